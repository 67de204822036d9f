// SPDX-License-Identifier: Apache-2.0
// Wants, plans, globs and buffers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verdict/made_up.h"
#include "verdict/glob.h"
#include "verdict/plan.h"

namespace gradcheck {
namespace {

using namespace made_up;
using testing::ElementsAre;

TEST(Glob, MatchesWholeTextsOnly) {
  EXPECT_TRUE(glob_matches("*", ""));
  EXPECT_TRUE(glob_matches("layers.*.weight", "layers.10.mlp.weight"));
  EXPECT_TRUE(glob_matches("a?c*", "abcdef"));
  EXPECT_TRUE(glob_matches("*a*b", "xaabab"));
  EXPECT_FALSE(glob_matches("layers.*", "my.layers.1"));
  EXPECT_FALSE(glob_matches("a?", "a"));
  EXPECT_FALSE(glob_matches("", "a"));
}

TEST(Wants, WorstTensorsComeFirstAndTheListIsTheSameForAllMoments) {
  Recipe recipe;
  recipe.micros = 2;
  recipe.reduce = [](const std::vector<Values>& ranks, const At& at) {
    Reduced reduced(ranks.size(), ddp_mean(DType::f32, ranks));
    if (at.tensor == 1) reduced[1][0] += 1;
    if (at.tensor == 2) reduced[1][0] += 100;
    return reduced;
  };
  const MadeUpRun run(recipe);
  const auto wants = wanted_payloads(run.table(), 0, 1 << 20);
  ASSERT_EQ(wants.size(), 3U);
  for (const Want& want : wants) {
    EXPECT_THAT(want.names,
                ElementsAre("policy/layer.bias", "policy/layer.weight", "policy/embed"));
    EXPECT_EQ(want.budget_bytes, (256U + 300U + 40U) * 4U);
  }
  EXPECT_EQ(wants[0].stage, Stage::local);
  EXPECT_EQ(wants[1].micro, 1);
  EXPECT_EQ(wants[2].stage, Stage::reduced);
  EXPECT_EQ(wants[2].micro, 1);
}

TEST(Wants, StayWithinTheBudgetOfAllMomentsTogether) {
  const MadeUpRun run({});
  const auto wants = wanted_payloads(run.table(), 0, 2 * (256 + 40) * 4);
  ASSERT_EQ(wants.size(), 2U);
  EXPECT_THAT(wants[0].names, ElementsAre("policy/embed", "policy/layer.bias"));
  EXPECT_TRUE(wanted_payloads(run.table(), 0, 8).empty());
  EXPECT_TRUE(wanted_payloads(run.table(), 5, 1 << 20).empty());
}

TEST(Plan, WrapperOwnsWhatItDoesNotIgnore) {
  Recipe recipe;
  recipe.edit = [](EvidenceTable& table) {
    for (const int rank : {0, 1}) table.rank(rank).wrappers.front().ignored = {"embed"};
  };
  const MadeUpRun run(recipe);
  const Plan plan = infer_plan(run.table(), arrange(run.table()), {});
  EXPECT_EQ(plan.lines[0].role, Role::undeclared);
  EXPECT_EQ(plan.lines[1].role, Role::shared);
  EXPECT_EQ(plan.lines[1].reduction, Reduction::mean);
  EXPECT_EQ(plan.lines[1].source, PlanSource::wrapper);
}

TEST(Plan, FirstMatchingRuleWinsAndFallsBackToTheWrapper) {
  PlanRule first, second;
  first.tensor = "layer.*";
  first.reduction = Reduction::sum;
  second.reduction = Reduction::none;
  const MadeUpRun run({});
  const Plan plan = infer_plan(run.table(), arrange(run.table()), {first, second});
  EXPECT_EQ(plan.lines[1].reduction, Reduction::sum);
  EXPECT_EQ(plan.lines[1].role, Role::shared);
  EXPECT_EQ(plan.lines[0].reduction, Reduction::none);
  EXPECT_EQ(plan.lines[0].source, PlanSource::declared);
}

TEST(Plan, IgnoredParameterThatDiffersIsUndeclaredAndNamed) {
  Recipe recipe;
  recipe.edit = [](EvidenceTable& table) {
    for (const int rank : {0, 1}) table.rank(rank).wrappers.front().ignored = {"embed"};
  };
  recipe.reduce = [](const std::vector<Values>& ranks, const At& at) {
    return at.tensor == 0 ? ranks : Reduced(ranks.size(), ddp_mean(DType::f32, ranks));
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_TRUE(has_code(arm, 606));
  EXPECT_TRUE(has_cause(arm, Cause::ignored_parameter));
}

// One buffer with these values on ranks 0 and 1 at a stage, under a wrapper's policy.
ArmReport with_buffer(const std::string& policy, Stage stage, double left, double right) {
  Recipe recipe;
  recipe.edit = [=](EvidenceTable& table) {
    for (const int rank : {0, 1}) {
      table.rank(rank).wrappers.front().buffers = policy;
      TensorRecord buffer;
      buffer.stage = stage;
      buffer.kind = TensorKind::buffer;
      buffer.model = "policy";
      buffer.name = "running_mean";
      buffer.shape = {1};
      buffer.state = TensorState::finite;
      buffer.stats = measure(DType::f32, to_bytes(DType::f32, {rank == 0 ? left : right}));
      table.put(rank, buffer, 5000);
      for (MarkRecord& mark : table.rank(rank).marks) mark.tensors += mark.stage == stage;
    }
  };
  return judged(recipe);
}

TEST(Buffers, DriftBetweenBroadcastsIsByDesign) {
  const std::string broadcast = "broadcast_before_forward";
  EXPECT_EQ(with_buffer(broadcast, Stage::after, 1, 2).outcome, Outcome::consistent);
  EXPECT_TRUE(has_code(with_buffer(broadcast, Stage::start, 1, 2), 401));
  EXPECT_TRUE(has_code(with_buffer(broadcast, Stage::next_forward, 1, 2), 401));
  EXPECT_FALSE(has_code(with_buffer(broadcast, Stage::start, 1, 1), 401));
}

TEST(Buffers, MustEqualMeansEverywhere) {
  const ArmReport arm = with_buffer("must_equal", Stage::after, 1, 2);
  EXPECT_TRUE(has_code(arm, 401)) << told(arm);
  EXPECT_TRUE(has_cause(arm, Cause::buffer_drift));
}

TEST(Buffers, UndeclaredAndDifferentIsANote) {
  const ArmReport arm = with_buffer("nothing", Stage::after, 1, 2);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_TRUE(has_code(arm, 403));
}

}  // namespace
}  // namespace gradcheck
