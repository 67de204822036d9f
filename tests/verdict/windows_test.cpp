// SPDX-License-Identifier: Apache-2.0
#include "verdict/windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verdict/made_up_job.h"

namespace gradcheck {
namespace {

using namespace made_up;
using testing::HasSubstr;

TEST(Windows, UncheckedStepsBetweenCheckedOnesAreHealthy) {
  Job job;
  JobModel model(job, "Net");
  for (const std::int64_t step : {0, 1, 2, 100, 200}) train(model, step);
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_EQ(arm.scope.steps, 5);
}

TEST(Windows, StartIsDueAfterAGap) {
  Job job;
  JobModel model(job, "Net");
  for (const std::int64_t step : {0, 1, 100}) train(model, step);
  std::erase_if(job.table().rank(0).marks, [](const MarkRecord& mark) {
    return mark.step == 100 && mark.stage == Stage::start;
  });
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  EXPECT_THAT(told(arm), HasSubstr("stage `start` of step 100"));
}

TEST(Windows, ParametersThatPartedInTheGapAreFound) {
  Job job;
  JobModel model(job, "Net");
  train(model, 0);
  model.parameters()[0][1][0] += 1;
  train(model, 100);
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told_with_notes(arm);
  EXPECT_TRUE(has_code(arm, 302));
  EXPECT_FALSE(has_code(arm, 301));
}

TEST(Windows, GradientThatIsNotClearAfterAGapIsNotCalledWrong) {
  Job job;
  JobModel model(job, "Net");
  train(model, 0);
  for (auto& gradient : model.gradients()) gradient.assign(2, normal(JobModel::kSize, 77));
  model.begin(100);
  model.backward();
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  EXPECT_EQ(arm.totals.wrong, 0);
  ASSERT_TRUE(has_code(arm, 210)) << told_with_notes(arm);
  EXPECT_EQ(find_code_in(arm, 210)->severity, Severity::warning);
  EXPECT_THAT(told(arm), HasSubstr("from micro-steps that were not recorded"));
  EXPECT_TRUE(has_cause(arm, Cause::carried_over));
}

TEST(Windows, GradientThatIsNotClearAfterAGapIsStillComparedAcrossRanks) {
  Job job;
  JobModel model(job, "Net");
  train(model, 0);
  for (auto& gradient : model.gradients()) {
    gradient = {normal(JobModel::kSize, 77), normal(JobModel::kSize, 78)};
  }
  model.begin(100);
  model.backward({.armed = false, .bare = true});
  model.step();
  EXPECT_EQ(job.judge().outcome, Outcome::inconsistent);
}

TEST(Windows, ForgottenZeroGradCrossesOptimizerSteps) {
  Job job;
  JobModel model(job, "Net");
  for (std::int64_t step = 0; step < 3; ++step) {
    model.begin(step);
    model.backward();
    model.step();
  }
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_TRUE(has_code(arm, 210));
  EXPECT_TRUE(has_cause(arm, Cause::carried_over));
}

// SAM's first pass, or a logging backward, cleared before the one that counts.
TEST(Windows, BackwardThatIsClearedIsNotInTheWindow) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  model.backward();
  model.zero_grad();
  model.backward();
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_TRUE(has_note(arm, "cleared before the optimizer step"));
}

TEST(Windows, GradientThatIsClearedBeforeTheStepEntersNone) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  model.backward();
  model.zero_grad();
  for (const int rank : {0, 1}) model.event(rank, EventType::grad_cleared);
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  EXPECT_EQ(arm.totals.compared, 0);
  EXPECT_THAT(arm.headline, HasSubstr("no gradient entered a step"));
}

TEST(Windows, MicroStepWithoutClearingKeepsTheEarlierOne) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  model.backward({.armed = false, .no_sync = true});
  for (auto& gradient : model.gradients()) {
    // A bug drops what was accumulated without clearing it: the agent has nothing to announce.
    gradient.assign(2, normal(JobModel::kSize, 5, 1e-30));
  }
  model.backward();
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told_with_notes(arm);
  EXPECT_TRUE(has_code(arm, 203)) << told_with_notes(arm);
}

// Rank 0 had nothing in the first micro-step and calls its gradient clear; rank 1 had something.
TEST(Windows, WhatOneRankCallsClearAnotherMayNot) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  model.backward({.armed = false, .no_sync = true, .local = [](int rank, std::size_t t) -> Maybe {
                    if (rank == 0) return std::nullopt;
                    return normal(JobModel::kSize, 31 + t);
                  }});
  model.backward();
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
}

TEST(Windows, ManyStepsAndTensorsAreReadInOneWalk) {
  Job job;
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) names.push_back("layer." + std::to_string(i));
  JobModel model(job, "Net", true, names);
  for (std::int64_t step = 0; step < 100; ++step) {
    model.begin(step);
    model.backward({.local = [](int, std::size_t) -> Maybe { return std::nullopt; }});
    for (const int rank : {0, 1}) model.event(rank, EventType::optimizer_step);
  }
  job.table().finish();
  const Facts facts = arrange(job.table(), false);
  EXPECT_EQ(facts.windows.size(), 30'000U);
  for (const auto& [key, window] : facts.windows) EXPECT_EQ(window.own.size(), 1U);
}

}  // namespace
}  // namespace gradcheck
