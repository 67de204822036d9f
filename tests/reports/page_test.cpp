// SPDX-License-Identifier: Apache-2.0
#include "reports/page.h"

#include <gtest/gtest.h>

namespace gradcheck {
namespace {

ConsoleOptions options_of(std::size_t width, bool colour = false) {
  ConsoleOptions options;
  options.width = width;
  options.colour = colour;
  return options;
}

TEST(Page, LabelledTextIsBrokenBehindItsLabel) {
  Page page(options_of(34));
  page.labelled(2, "next", Style::bold, "Call the wrapper for the loss.");
  EXPECT_EQ(page.take(),
            "  next      Call the wrapper for\n"
            "            the loss.\n");
  EXPECT_EQ(page.take(), "");
}

TEST(Page, AnEmptyTextAddsNothing) {
  Page page(options_of(80));
  page.labelled(2, "next", Style::bold, "");
  EXPECT_EQ(page.take(), "");
}

TEST(Page, WidthZeroNeverBreaks) {
  Page page(options_of(0));
  page.paragraph(1, std::string(500, 'a') + " b");
  EXPECT_EQ(page.take(), " " + std::string(500, 'a') + " b\n");
}

TEST(Page, ANarrowTerminalStillGetsText) {
  Page page(options_of(5));
  page.paragraph(40, "one two three four five");
  EXPECT_EQ(page.take(),
            std::string(40, ' ') + "one two three four\n" + std::string(40, ' ') + "five\n");
}

TEST(Page, ColourDoesNotMoveColumns) {
  Page page(options_of(80, true));
  page.labelled(0, "GC201", Style::red, "text");
  EXPECT_EQ(page.take(), "\x1b[1;31mGC201\x1b[0m     text\n");
}

}  // namespace
}  // namespace gradcheck
