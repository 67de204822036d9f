// SPDX-License-Identifier: Apache-2.0
#include "reports/colour.h"

#include <gtest/gtest.h>

namespace gradcheck {
namespace {

using enum ColourChoice;

struct Row {
  ColourChoice choice;
  ColourEnvironment environment;  // NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE, TERM
  bool is_terminal;
  bool expected;
};

const Row kRows[] = {
    {automatic, {{}, {}, {}, "xterm"}, true, true},
    {automatic, {{}, {}, {}, {}}, true, true},
    {automatic, {{}, {}, {}, "xterm"}, false, false},
    {automatic, {{}, {}, {}, "dumb"}, true, false},
    {automatic, {"1", {}, {}, "xterm"}, true, false},
    {automatic, {"", {}, {}, "xterm"}, true, true},  // NO_COLOR counts where it is not empty
    {automatic, {{}, "1", {}, "dumb"}, false, true},
    {automatic, {{}, {}, "1", {}}, false, true},
    {automatic, {{}, "0", "", {}}, false, false},
    {automatic, {"1", "1", "1", {}}, true, false},
    {always, {"1", {}, {}, "dumb"}, false, true},
    {never, {{}, "1", "1", "xterm"}, true, false},
};

TEST(Colour, OptionBeatsEnvironmentBeatsTerminal) {
  for (const Row& row : kRows) {
    EXPECT_EQ(use_colour(row.choice, row.environment, row.is_terminal), row.expected)
        << (&row - kRows);
  }
}

TEST(Colour, PaintsOnlyWhereAsked) {
  EXPECT_EQ(paint("x", Style::green, true), "\x1b[32mx\x1b[0m");
  EXPECT_EQ(paint("x", Style::green, false), "x");
  EXPECT_EQ(paint("x", Style::plain, true), "x");
  EXPECT_EQ(paint("", Style::red, true), "");
  EXPECT_EQ(style_of(Verdict::fail), Style::red);
}

}  // namespace
}  // namespace gradcheck
