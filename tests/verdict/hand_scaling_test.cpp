// SPDX-License-Identifier: Apache-2.0
// Factors between reduction and step that nobody was seen to make.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/verdict/made_up_job.h"

namespace gradcheck {
namespace {

using namespace made_up;
using testing::HasSubstr;

// One factor for each step and rank.
ArmReport scaled_by(const std::vector<std::vector<double>>& factors, int ranks = 2) {
  Job job(ranks);
  JobModel model(job, "Net");
  std::int64_t step = 0;
  for (const std::vector<double>& mine : factors) {
    model.begin(step++);
    model.zero_grad();
    model.backward();
    for (int rank = 0; rank < ranks; ++rank)
      model.scale(rank, mine[static_cast<std::size_t>(rank)]);
    model.step();
  }
  return job.judge();
}

TEST(HandScaling, FactorsBelowOneThatVaryAreClipping) {
  const ArmReport arm = scaled_by({{0.31, 0.31}, {1, 1}, {0.22, 0.22}});
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_TRUE(has_note(arm, "scaled by 0.22 × to 0.31 × between backward and step in 2 steps"))
      << told_with_notes(arm);
}

TEST(HandScaling, FactorThatDiffersByRankIsAnError) {
  EXPECT_TRUE(has_code(scaled_by({{0.31, 0.3}, {0.22, 0.21}}), 204));
}

TEST(HandScaling, OneStepCannotTellClippingFromAConstant) {
  const ArmReport arm = scaled_by({{0.31, 0.31}});
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  EXPECT_TRUE(has_code(arm, 604)) << told_with_notes(arm);
}

TEST(HandScaling, StepsBelowTheNormAreNotScaled) {
  EXPECT_EQ(scaled_by({{0.31, 0.31}, {1, 1}}).outcome, Outcome::consistent);
}

TEST(HandScaling, FactorOfEveryStepIsAnError) {
  EXPECT_TRUE(has_code(scaled_by({{0.31, 0.31}, {0.31, 0.31}}), 204));
}

TEST(HandScaling, FactorAboveOneIsAnError) {
  EXPECT_TRUE(has_code(scaled_by({{1.5, 1.5}, {1.2, 1.2}}), 204));
}

TEST(HandScaling, DivisionByTheWorldIsAnError) {
  EXPECT_TRUE(has_code(scaled_by({{0.5, 0.5}}), 204));
  EXPECT_TRUE(has_code(scaled_by({{0.25, 0.25}}), 204));
  EXPECT_TRUE(has_code(scaled_by({{0.25, 0.25, 0.25, 0.25}}, 4), 204));
}

TEST(HandScaling, FactorThatLeavesATensorOutIsAnError) {
  Job job;
  JobModel model(job, "Net");
  for (const std::int64_t step : {0, 1}) {
    model.begin(step);
    model.zero_grad();
    model.backward();
    const Gradients before = model.gradients();
    for (const int rank : {0, 1}) model.scale(rank, 0.3 + 0.1 * static_cast<double>(step));
    model.gradients()[0] = before[0];
    model.step();
  }
  const ArmReport arm = job.judge();
  ASSERT_TRUE(has_code(arm, 204)) << told_with_notes(arm);
  EXPECT_EQ(find_code_in(arm, 204)->count, 2U);
}

// --- edits of one rank

TEST(Edits, RankThatChangedItsGradientIsNamedThoughThereAreTwoRanks) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  model.backward();
  (*model.gradients()[1][1])[0] += 1;
  model.step();
  const ArmReport arm = job.judge();
  ASSERT_TRUE(has_code(arm, 101)) << told_with_notes(arm);
  EXPECT_EQ(find_code_in(arm, 101)->ranks, std::vector<int>{1});
  const CauseClaim* claim = find_cause(arm, Cause::corrupted_rank, "Net");
  ASSERT_NE(claim, nullptr) << told_with_notes(arm);
  EXPECT_THAT(claim->evidence.front(), HasSubstr("body.bias was changed on rank 1 alone"));
  EXPECT_THAT(claim->next, HasSubstr("what rank 1 does to gradients"));
}

TEST(Edits, GradientsClearedBeforeTheStepAreToldAsSuch) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  model.backward();
  for (auto& gradient : model.gradients()) {
    for (Maybe& mine : gradient) mine = Values(JobModel::kSize);
  }
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  ASSERT_TRUE(has_code(arm, 604));
  EXPECT_THAT(find_code_in(arm, 604)->message, HasSubstr("cleared between the backward"));
  EXPECT_THAT(find_code_in(arm, 604)->hint, HasSubstr("Call zero_grad before the backward"));
}

}  // namespace
}  // namespace gradcheck
