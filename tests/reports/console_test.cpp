// SPDX-License-Identifier: Apache-2.0
#include "reports/console.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <locale>
#include <string>

#include "golden.h"
#include "made_up_reports.h"
#include "reports/text.h"

namespace gradcheck::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string console(const Report& report, int verbosity = 0, std::size_t width = 140) {
  ConsoleOptions options;
  options.verbosity = verbosity;
  options.width = width;
  return rendered("console", report, options);
}

TEST(Console, Pass) { expect_golden("pass.txt", console(passed_report())); }
TEST(Console, PassNarrow) { expect_golden("pass_100.txt", console(passed_report(), 0, 100)); }
TEST(Console, PassVerbose) { expect_golden("pass_v.txt", console(passed_report(), 1)); }
TEST(Console, Fail) { expect_golden("fail.txt", console(failed_report(310))); }
TEST(Console, FailNarrow) { expect_golden("fail_100.txt", console(failed_report(), 0, 100)); }
TEST(Console, WrongSum) { expect_golden("wrong.txt", console(wrong_report())); }
TEST(Console, RankDiedNarrow) { expect_golden("died_80.txt", console(died_report(), 0, 80)); }
TEST(Console, NotStarted) { expect_golden("not_started.txt", console(not_started_report())); }
TEST(Console, HalfKnown) { expect_golden("half_known.txt", console(half_known_report(), 1)); }
TEST(Console, RankDied) { expect_golden("died.txt", console(died_report())); }
TEST(Console, Raised) { expect_golden("raised.txt", console(raised_report())); }
TEST(Console, RankDiedVerbose) { expect_golden("died_v.txt", console(died_report(), 2)); }
TEST(Console, Inconclusive) { expect_golden("inconclusive.txt", console(inconclusive_report())); }
TEST(Console, Skipped) { expect_golden("skipped.txt", console(skipped_report())); }
TEST(Console, OneRank) { expect_golden("one_rank.txt", console(one_rank_report())); }
TEST(Console, Remarks) { expect_golden("remarks.txt", console(remarks_report())); }
TEST(Console, RemarksVerbose) { expect_golden("remarks_v.txt", console(remarks_report(), 1, 160)); }
TEST(Console, WeirdNames) { expect_golden("weird.txt", console(weird_report())); }
TEST(Console, NotFinite) { expect_golden("not_finite.txt", console(not_finite_report(), 1)); }
TEST(Console, Mixed) { expect_golden("mixed.txt", console(mixed_report())); }

TEST(Console, QuietIsVerdictLinesAndSummary) {
  ConsoleOptions options;
  options.quiet = true;
  expect_golden("mixed_q.txt", rendered("console", mixed_report(), options));
}

TEST(Console, ColourOnlyWhereAsked) {
  ConsoleOptions options;
  options.colour = true;
  options.width = 140;
  expect_golden("mixed_colour.txt", rendered("console", mixed_report(), options));
  EXPECT_THAT(console(mixed_report(), 2), Not(HasSubstr("\x1b")));
  EXPECT_EQ(without_escapes(rendered("console", mixed_report(), options)), console(mixed_report()));
}

TEST(Console, NoControlCharacterPasses) {
  for (int verbosity = 0; verbosity <= 2; ++verbosity) {
    for (const char c : console(weird_report(), verbosity)) {
      EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
    }
  }
}

TEST(Console, ARunWithoutScenariosSaysSo) {
  EXPECT_EQ(console(report_of({})), "nothing was run, 0.9 s\n");
}

TEST(Console, OneRankNeverClaimsAgreement) {
  EXPECT_THAT(console(one_rank_report(), 0),
              AllOf(Not(HasSubstr(" differed")), HasSubstr("310 tensors, agreement not tested")));
}

TEST(Console, WrongStandsBesideDiffered) {
  EXPECT_THAT(console(wrong_report()), HasSubstr("0/310 differed, 310 wrong"));
}

// Regression: at 80 columns "as expected" was broken by the terminal.
TEST(Console, EveryEndingStaysOnItsFirstLine) {
  const std::string text = console(remarks_report(), 0, 80);
  EXPECT_THAT(text, HasSubstr("0/310 differed, 10 unrecorded   max 0   as expected\n"));
  EXPECT_THAT(text, HasSubstr("310/310 differed   max ~5.9e-02   as expected\n"));
}

// Each arm of a scenario fails alike where nothing can be started; the runner notes it too.
TEST(Console, WhyNothingStartedIsSaidOnce) {
  const std::string text = console(not_started_report(), 0, 0);
  const std::string why = not_started_arm("").headline;
  EXPECT_EQ(text.find(why), text.rfind(why)) << text;
  EXPECT_THAT(text, HasSubstr("the same as unwrapped"));
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

TEST(Console, TheFirstLineIsTheAnswerHoweverNarrow) {
  for (const std::size_t width : {40, 80, 160}) {
    EXPECT_THAT(first_line(console(died_report(), 0, width)),
                StartsWith("error ddp_rank_dies   wrapped: died"));
    EXPECT_THAT(first_line(console(raised_report(), 0, width)),
                StartsWith("error ddp_raises   raises: raised"));
    EXPECT_THAT(first_line(console(passed_report(), 0, width)), StartsWith("pass  kto_liger_ddp"));
  }
}

TEST(Console, NamesOfScenariosStandBeneathOneAnother) {
  const std::string text = console(mixed_report());
  for (const char* start : {"pass  kto_", "fail  ddp_", "error ddp_", "skip  needs_"}) {
    EXPECT_THAT("\n" + text, HasSubstr(std::string("\n") + start));
  }
}

// Regression: --arm leaves out the controls of some scenarios only.
TEST(Console, ControlNotRunIsSaidOfTheScenariosItIsTrueOf) {
  ScenarioReport whole = scenario_of({consistent_arm()}, "whole");
  ScenarioReport alone = scenario_of({consistent_arm()}, "alone");
  alone.control_not_run = true;
  const std::string text = console(report_of({whole, alone}));
  EXPECT_THAT(text, HasSubstr("pass  whole   2 ranks"));
  EXPECT_THAT(text, HasSubstr("pass  alone   control: not run   2 ranks"));
}

// Regression: a skipped arm knows no backend, so that each other arm repeated its own.
TEST(Console, SkippedArmSharesNothing) {
  ArmReport skipped = skipped_arm();
  skipped.backend.clear();
  const std::string text = console(report_of({scenario_of({consistent_arm(), skipped}, "some")}));
  EXPECT_THAT(text, HasSubstr("pass  some   2 ranks, gloo, fp32, seed"));
}

TEST(Console, LinesFitTheWidth) {
  for (const std::size_t width : {80, 100, 120, 160}) {
    for (const Report& report : {mixed_report(), remarks_report(), not_started_report(),
                                 one_rank_report(), half_known_report(), failed_report()}) {
      for (const std::string& line : lines_of(console(report, 0, width))) {
        const bool name = line.find("worst ") != line.npos;  // shown whole, to be copied
        EXPECT_TRUE(name || columns_of(line) <= width) << line;
      }
    }
  }
}

struct Comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

// The C++ locale everywhere, the C one too where the machine has such a locale.
TEST(Console, DecimalCommaDoesNotReachTheReport) {
  const std::string before = console(mixed_report(), 2);
  const std::locale old = std::locale::global(std::locale(std::locale(), new Comma));
  std::setlocale(LC_NUMERIC, "de_DE.UTF-8");
  const std::string after = console(mixed_report(), 2);
  const std::string json = rendered("json", mixed_report());
  std::locale::global(old);
  std::setlocale(LC_NUMERIC, "C");
  EXPECT_EQ(after, before);
  EXPECT_EQ(json, rendered("json", mixed_report()));
}

TEST(Console, AHundredThousandTensorsStayShort) {
  EXPECT_LT(console(large_report(100'000)).size(), 2000U);
}

}  // namespace
}  // namespace gradcheck::test
