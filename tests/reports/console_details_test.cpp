// SPDX-License-Identifier: Apache-2.0
#include "reports/console_details.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "made_up_reports.h"

namespace gradcheck::test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string details(const ArmReport& arm, int verbosity = 1) {
  ConsoleOptions options;
  options.verbosity = verbosity;
  options.width = 200;
  Page page(options);
  add_arm_details(page, 2, arm);
  return page.take();
}

TEST(ConsoleDetails, ScopeSaysWhatWasNotChecked) {
  EXPECT_THAT(details(one_rank_arm()), HasSubstr("not checked: agreement (one rank)"));
}

TEST(ConsoleDetails, EveryTensorAndPlanLineIsShown) {
  const std::string text = details(unreduced_arm("unwrapped", 310));
  for (const std::string& name : qwen3_names()) EXPECT_THAT(text, HasSubstr(name));
  EXPECT_THAT(text, HasSubstr("rotary.inv_freq"));
}

TEST(ConsoleDetails, LogsOfHealthyRanksNeedTwoV) {
  ArmReport arm = consistent_arm();
  arm.ranks[0].stderr_tail = "a log line\n";
  EXPECT_THAT(details(arm, 1), Not(HasSubstr("a log line")));
  EXPECT_THAT(details(arm, 2), HasSubstr("| a log line"));
}

TEST(ConsoleDetails, ARunWithoutSurroundingsAddsNothing) {
  Page page(ConsoleOptions{});
  add_run_details(page, RunInfo{});
  add_scenario_details(page, ScenarioReport{});
  EXPECT_EQ(page.take(), "");
}

}  // namespace
}  // namespace gradcheck::test
