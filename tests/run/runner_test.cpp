// SPDX-License-Identifier: Apache-2.0
#include "run/runner.h"

#include <gtest/gtest.h>

#include <vector>

namespace gradcheck {
namespace {

ScenarioReport scenario_with(Verdict verdict) {
  ScenarioReport report;
  report.verdict = verdict;
  return report;
}

int code_of(const std::vector<Verdict>& verdicts) {
  std::vector<ScenarioReport> reports;
  for (const Verdict verdict : verdicts) reports.push_back(scenario_with(verdict));
  return summarise(reports).exit_code;
}

TEST(ExitCodes, FollowThePrecedence) {
  using enum Verdict;
  EXPECT_EQ(code_of({pass, pass}), 0);
  EXPECT_EQ(code_of({pass, skip}), 0);
  EXPECT_EQ(code_of({skip, skip}), 4);
  EXPECT_EQ(code_of({pass, error, skip}), 3);
  EXPECT_EQ(code_of({error, fail}), 1);
}

TEST(ExitCodes, NothingRunIsNotAPass) { EXPECT_NE(code_of({}), 0); }

TEST(Summary, CountsOnlyArmsThatExpectToBeConsistent) {
  ScenarioReport report;
  report.verdict = Verdict::pass;
  report.arms.resize(2);
  report.arms[0].expected = Outcome::inconsistent;
  report.arms[0].totals.compared = 310;
  report.arms[0].totals.differed = 310;
  report.arms[1].expected = Outcome::consistent;
  report.arms[1].totals.compared = 310;
  report.arms[1].totals.wrong = 2;
  const Summary summary = summarise({report});
  EXPECT_EQ(summary.compared, 310);
  EXPECT_EQ(summary.differed, 0);
  EXPECT_EQ(summary.wrong, 2);
}

}  // namespace
}  // namespace gradcheck
