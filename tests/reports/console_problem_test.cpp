// SPDX-License-Identifier: Apache-2.0
#include "reports/console_problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "made_up_reports.h"
#include "reports/text.h"

namespace gradcheck::test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string explained(const ArmReport& arm, int verbosity = 0) {
  ConsoleOptions options;
  options.verbosity = verbosity;
  Page page(options);
  add_explanation(page, 2, arm);
  return page.take();
}

TEST(ConsoleProblem, AnArmAsExpectedStaysShort) {
  EXPECT_EQ(explained(consistent_arm()), "");
  EXPECT_EQ(lines_of(explained(unreduced_arm())).size(), 1U);
  EXPECT_THAT(explained(unreduced_arm(), 1), HasSubstr("GC201"));
}

TEST(ConsoleProblem, AWarningOnAnArmThatPassesIsShown) {
  EXPECT_THAT(explained(remarks_report().scenarios[0].arms[0]), HasSubstr("GC210     warning: "));
}

TEST(ConsoleProblem, StderrIsCutToItsLastLinesUnlessAsked) {
  ArmReport arm = died_arm();
  arm.ranks[1].stderr_tail = "first\n";
  for (int i = 0; i < 50; ++i) arm.ranks[1].stderr_tail += "line " + std::to_string(i) + "\n";
  EXPECT_THAT(explained(arm), Not(HasSubstr("| line 43")));
  EXPECT_THAT(explained(arm), HasSubstr("| line 44"));
  EXPECT_THAT(explained(arm, 1), HasSubstr("| line 10"));
  EXPECT_THAT(explained(arm, 2), HasSubstr("| first"));
}

TEST(ConsoleProblem, NamesOfAFindingAreShownWhereTheWorstDoNotSayThem) {
  ArmReport arm = failed_arm();
  arm.findings[0].count = 3;
  arm.findings[0].names = {"only.this"};
  EXPECT_THAT(explained(arm), HasSubstr("only.this, … (+2)"));
}

TEST(ConsoleProblem, AnExceptionIsNotToldFourTimes) {
  const std::string text = explained(raised_arm());
  EXPECT_THAT(text, HasSubstr("reason    expected consistent, saw raised\n"));
  EXPECT_THAT(text, HasSubstr("GC801     error: the program raised an exception; last record: "));
  EXPECT_EQ(text.find("labels of a batch"), text.rfind("labels of a batch"));
}

TEST(ConsoleProblem, ANoteThatTheHeadlineHoldsIsLeftOut) {
  ArmReport arm = not_started_arm("a");
  arm.notes.push_back("another");
  EXPECT_EQ(explained(arm),
            "  reason    expected consistent, saw error\n"
            "  note      another\n");
  arm.reason = arm.headline;
  EXPECT_EQ(explained(arm), "  note      another\n");
}

TEST(ConsoleProblem, RanksThatAreNotKnownDoNotPassForFine) {
  const std::string text = explained(half_known_report().scenarios[0].arms[0]);
  EXPECT_THAT(text, HasSubstr("rank 1    end not known\n"));
  EXPECT_THAT(text, HasSubstr("ranks     nothing known of rank 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("rank 0")));
}

TEST(ConsoleProblem, TheCommandToLookCloserStandsWithProblemsOnly) {
  Page page(ConsoleOptions{});
  add_rerun(page, 0, consistent_arm(), "command");
  EXPECT_EQ(page.take(), "");
  add_rerun(page, 0, failed_arm(), "command");
  EXPECT_EQ(page.take(), "rerun     command\n");
}

}  // namespace
}  // namespace gradcheck::test
