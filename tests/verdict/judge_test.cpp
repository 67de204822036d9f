// SPDX-License-Identifier: Apache-2.0
#include "verdict/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/verdict/made_up.h"

namespace gradcheck {
namespace {

using namespace made_up;
using testing::HasSubstr;

constexpr std::int64_t kTensors = 3;  // of the default recipe

Reduced everywhere(const std::vector<Values>& ranks, Values value) {
  return Reduced(ranks.size(), std::move(value));
}

Recipe unwrapped_recipe() {
  Recipe recipe;
  recipe.armed = [](const At&) { return false; };
  return recipe;
}

TEST(Judge, HealthyRunIsConsistent) {
  const ArmReport arm = judged({});
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_EQ(arm.totals.compared, kTensors);
  EXPECT_EQ(arm.totals.differed, 0);
  EXPECT_EQ(arm.totals.wrong, 0);
  EXPECT_EQ(arm.totals.max_abs, 0.0);
  EXPECT_TRUE(arm.totals.max_abs_exact);
  EXPECT_LE(*arm.totals.bound_used, 1.0);
  EXPECT_THAT(arm.headline, HasSubstr("is the mean of the local gradients"));
  EXPECT_TRUE(arm.findings.empty()) << told(arm);
}

TEST(Judge, UnwrappedLossLeavesEveryGradientLocal) {
  const ArmReport arm = judged(unwrapped_recipe());
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told(arm);
  EXPECT_EQ(arm.totals.differed, kTensors);
  EXPECT_EQ(arm.totals.wrong, 0);
  EXPECT_TRUE(has_code(arm, 101));
  EXPECT_TRUE(has_code(arm, 201)) << told(arm);
  EXPECT_TRUE(has_code(arm, 302));
  ASSERT_TRUE(has_cause(arm, Cause::bypass)) << told(arm);
  EXPECT_EQ(arm.causes.front().confidence, Confidence::certain);
  EXPECT_EQ(arm.causes.front().site, "trainer.cpp:42");
  EXPECT_EQ(arm.headline, "not reduced: 1 backward, 0 armed wrapper forwards");
  EXPECT_GT(*arm.totals.max_abs, 0.1);
  EXPECT_TRUE(arm.totals.max_abs_exact);
}

TEST(Judge, DistanceFromSketchesIsMarkedAsAnEstimate) {
  Recipe recipe = unwrapped_recipe();
  recipe.payloads = false;
  const ArmReport exact = judged(unwrapped_recipe());
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.totals.differed, kTensors);
  EXPECT_TRUE(has_code(arm, 201)) << told(arm);
  EXPECT_FALSE(arm.totals.max_abs_exact);
  EXPECT_GT(*arm.totals.max_abs, *exact.totals.max_abs / 3);
  EXPECT_LT(*arm.totals.max_abs, *exact.totals.max_abs * 3);
}

TEST(Judge, AbsentOnOneRankIsADifference) {
  Recipe recipe = unwrapped_recipe();
  recipe.tensors = {{"a", 40}, {"b", 40}, {"c", 40}};
  recipe.local = [](const At& at) -> Maybe {
    if (at.tensor == 2 && at.rank == 1) return std::nullopt;
    return normal(40, static_cast<std::uint64_t>(at.rank) * 10 + at.tensor);
  };
  const ArmReport arm = judged(recipe);
  EXPECT_TRUE(has_code(arm, 102)) << told(arm);
  EXPECT_TRUE(has_code(arm, 201)) << told(arm);
  EXPECT_TRUE(has_cause(arm, Cause::rank_divergent_graph));
  EXPECT_EQ(arm.totals.differed, kTensors);
}

TEST(Judge, AbsentLocalThatWasReducedIsHealthy) {
  Recipe recipe;
  recipe.local = [](const At& at) -> Maybe {
    if (at.tensor == 2 && at.rank == 1) return std::nullopt;
    return normal(40, static_cast<std::uint64_t>(at.rank) * 10 + at.tensor);
  };
  recipe.tensors = {{"a", 40}, {"b", 40}, {"c", 40}};
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
}

TEST(Judge, AbsentEverywhereIsCountedAndComparesNothing) {
  Recipe recipe;
  recipe.local = [](const At& at) -> Maybe {
    if (at.tensor == 2) return std::nullopt;
    return normal(40, static_cast<std::uint64_t>(at.rank) * 10 + at.tensor);
  };
  recipe.tensors = {{"a", 40}, {"b", 40}, {"c", 40}};
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.totals.absent, 1);
  EXPECT_EQ(arm.totals.compared, 2);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
}

TEST(Judge, EverythingAbsentIsInconclusive) {
  Recipe recipe;
  recipe.local = [](const At&) -> Maybe { return std::nullopt; };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
}

TEST(Judge, ZeroLossProvesNothing) {
  Recipe recipe;
  recipe.local = [](const At&) -> Maybe { return Values(40); };
  recipe.tensors = {{"a", 40}, {"b", 40}};
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_TRUE(has_code(arm, 602));
  EXPECT_EQ(arm.headline, "every gradient is zero: nothing proven");
  EXPECT_EQ(arm.totals.zero, 2);
}

TEST(Judge, SameDataOnAllRanksProvesNothing) {
  Recipe recipe;
  recipe.local = [](const At& at) -> Maybe { return normal(64, 5 + at.tensor); };
  recipe.tensors = {{"a", 64}, {"b", 64}};
  recipe.batch = [](const At&) { return "same"; };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_TRUE(has_code(arm, 601));
  EXPECT_TRUE(has_cause(arm, Cause::duplicate_data));
}

TEST(Judge, SameBatchUnderDropoutIsSeenThoughGradientsDiffer) {
  Recipe recipe;
  recipe.batch = [](const At&) { return "same"; };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_TRUE(has_code(arm, 601));
}

TEST(Judge, EqualLocalsWithoutBatchDigestsProveNothing) {
  Recipe recipe;
  recipe.local = [](const At& at) -> Maybe { return normal(64, 5 + at.tensor); };
  recipe.tensors = {{"a", 64}, {"b", 64}};
  recipe.batch = [](const At&) { return ""; };
  EXPECT_EQ(judged(recipe).outcome, Outcome::inconclusive);
}

TEST(Judge, HookMissingOnEveryRankIsNeverConsistent) {
  Recipe recipe;
  recipe.recorded = [](const At& at, Stage stage) {
    return !(stage == Stage::local && at.tensor == 1);
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_TRUE(has_code(arm, 603));
}

TEST(Judge, ReducedMissingOnEveryRankIsUnrecordedNotPassed) {
  Recipe recipe;
  recipe.recorded = [](const At& at, Stage stage) {
    return !(stage == Stage::reduced && at.tensor == 1);
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_EQ(arm.totals.unrecorded, 1);
  EXPECT_EQ(arm.totals.inventory, kTensors);
}

TEST(Judge, GradientsNeverRecordedAtAllAreNeverConsistent) {
  Recipe recipe;
  recipe.recorded = [](const At&, Stage stage) {
    return stage == Stage::start || stage == Stage::after;
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_EQ(arm.totals.unrecorded, kTensors);
}

TEST(Judge, StageWithoutMarkIsInconclusiveAndNamed) {
  for (const Stage stage :
       {Stage::start, Stage::local, Stage::reduced, Stage::final, Stage::after}) {
    Recipe recipe;
    recipe.marked = [stage](const At& at, Stage s) { return !(s == stage && at.rank == 1); };
    const ArmReport arm = judged(recipe);
    EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
    EXPECT_TRUE(has_code(arm, stage == Stage::local ? 603 : 604));
    EXPECT_THAT(told(arm), HasSubstr("incomplete on rank 1"));
    EXPECT_THAT(told(arm), HasSubstr(std::string(name_of(stage))));
  }
}

TEST(Judge, RankThatRecordedNothingIsNeverConsistent) {
  Recipe recipe;
  recipe.recorded = [](const At& at, Stage) { return at.rank != 1; };
  recipe.edit = [](EvidenceTable& table) { table.rank(1).events.clear(); };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_EQ(arm.totals.unrecorded, kTensors);
  EXPECT_TRUE(has_code(arm, 804));
}

TEST(Judge, NoEvidenceAtAllIsNeverConsistent) {
  EvidenceTable table(2);
  for (const int rank : {0, 1}) table.rank(rank).end = RankEnd::bye;
  table.finish();
  const ArmReport arm = judge({table, {}, {}});
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_TRUE(has_code(arm, 604));
}

TEST(Judge, RefusedEvidenceIsAnError) {
  Recipe recipe;
  recipe.edit = [](EvidenceTable& table) { table.refuse("rank 0 said hello twice"); };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::error);
  EXPECT_THAT(arm.headline, HasSubstr("rank 0 said hello twice"));
}

TEST(Judge, RefusedEvidenceStillTellsHowTheProgramEnded) {
  Recipe recipe;
  recipe.edit = [](EvidenceTable& table) {
    table.refuse("rank 0 said hello twice");
    table.rank(1).end = RankEnd::exited;
    table.rank(1).marks.clear();
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::error);
  EXPECT_TRUE(has_code(arm, 802)) << told(arm);
}

TEST(Judge, FewerStepsThanAskedForAreInconclusive) {
  const MadeUpRun run({});
  const std::vector<PlanRule> rules;
  const PayloadViews none;
  EXPECT_EQ(judge({run.table(), rules, none, 2}).outcome, Outcome::inconclusive);
}

TEST(Judge, BugInTheSecondStepOnlyIsSeen) {
  Recipe recipe;
  recipe.steps = 3;
  recipe.reduce = [](const std::vector<Values>& ranks, const At& at) {
    return at.step == 1 ? ranks : everywhere(ranks, ddp_mean(DType::f32, ranks));
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconsistent);
  EXPECT_EQ(arm.totals.differed, kTensors);
  EXPECT_EQ(arm.steps[0].differed, 0);
  EXPECT_EQ(arm.steps[1].differed, kTensors);
  EXPECT_EQ(arm.findings.front().step, 1);
}

TEST(Judge, NanWithEqualBitsIsNotADifferenceButNotConsistentEither) {
  Recipe recipe;
  recipe.local = [](const At& at) -> Maybe {
    Values values = normal(64, static_cast<std::uint64_t>(at.rank) * 10 + at.tensor);
    if (at.tensor == 0 && at.rank == 1) values[3] = std::numeric_limits<double>::quiet_NaN();
    return values;
  };
  recipe.tensors = {{"a", 64}, {"b", 64}};
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.totals.differed, 0) << told(arm);
  EXPECT_EQ(arm.totals.wrong, 0) << told(arm);
  EXPECT_EQ(arm.totals.nonfinite, 1);
  EXPECT_EQ(arm.outcome, Outcome::inconsistent);
  ASSERT_TRUE(has_code(arm, 701));
  EXPECT_EQ(arm.findings.front().ranks, std::vector<int>{1});
}

TEST(Judge, OverflowMadeByTheReductionIsItsOwnFault) {
  for (const bool payloads : {true, false}) {
    Recipe recipe;
    recipe.payloads = payloads;
    recipe.reduce = [](const std::vector<Values>& ranks, const At&) {
      Values mean = ddp_mean(DType::f32, ranks);
      mean[5] = std::numeric_limits<double>::infinity();
      return everywhere(ranks, mean);
    };
    const ArmReport arm = judged(recipe);
    EXPECT_TRUE(has_code(arm, 208)) << told(arm);
    EXPECT_FALSE(has_code(arm, 701));
    EXPECT_TRUE(has_cause(arm, Cause::overflow_in_reduction));
  }
}

TEST(Judge, NanThatVanishesInTheReductionIsWrong) {
  for (const bool payloads : {true, false}) {
    Recipe recipe;
    recipe.payloads = payloads;
    recipe.local = [](const At& at) -> Maybe {
      Values values = normal(64, static_cast<std::uint64_t>(at.rank) * 10 + at.tensor);
      if (at.rank == 1) values[3] = std::numeric_limits<double>::quiet_NaN();
      return values;
    };
    recipe.tensors = {{"a", 64}};
    recipe.reduce = [](std::vector<Values> ranks, const At&) {
      ranks[1][3] = 0;
      return everywhere(ranks, ddp_mean(DType::f32, ranks));
    };
    EXPECT_TRUE(has_code(judged(recipe), 209)) << payloads;
  }
}

TEST(Judge, SignOfZeroCountsAsDifferedAndSaysSo) {
  Recipe recipe;
  recipe.reduce = [](const std::vector<Values>& ranks, const At&) {
    Reduced reduced = everywhere(ranks, ddp_mean(DType::f32, ranks));
    reduced[0][2] = 0.0;
    reduced[1][2] = -0.0;
    return reduced;
  };
  recipe.local = [](const At& at) -> Maybe {
    Values values = normal(64, static_cast<std::uint64_t>(at.rank) * 10 + at.tensor);
    values[2] = 0;
    return values;
  };
  recipe.tensors = {{"a", 64}};
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconsistent);
  EXPECT_EQ(arm.totals.differed, 1);
  EXPECT_TRUE(has_code(arm, 101));
  EXPECT_TRUE(arm.tensors.front().sign_of_zero_only);
  EXPECT_EQ(arm.totals.max_abs, 0.0);
}

TEST(Judge, ShapeThatDiffersIsADifference) {
  Recipe recipe = unwrapped_recipe();
  recipe.local = [](const At& at) -> Maybe {
    return normal(at.tensor == 0 && at.rank == 1 ? 32 : 64,
                  static_cast<std::uint64_t>(at.rank) * 10 + at.tensor);
  };
  recipe.move = [](const At&, const Values& values) { return values; };
  recipe.learning_rate = 0;
  recipe.tensors = {{"a", 32}, {"b", 64}};
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconsistent);
  EXPECT_TRUE(has_code(arm, 103)) << told(arm);
}

TEST(Judge, UndeclaredAndEqualPassesAndSaysSo) {
  Recipe recipe;
  recipe.wrapped = false;
  recipe.armed = [](const At&) { return true; };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_THAT(arm.headline, HasSubstr("undeclared"));
}

TEST(Judge, UndeclaredAndDifferentIsInconclusiveNeverAgreement) {
  Recipe recipe = unwrapped_recipe();
  recipe.wrapped = false;
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_TRUE(has_code(arm, 606));
  EXPECT_FALSE(has_code(arm, 101));
}

TEST(Judge, RankLocalTensorThatIsEqualEverywhereIsWrong) {
  PlanRule rule;
  rule.tensor = "layer.*";
  rule.role = Role::rank_local;
  const ArmReport arm = judged({}, {rule});
  EXPECT_TRUE(has_code(arm, 104)) << told(arm);
  EXPECT_TRUE(has_cause(arm, Cause::shared_by_mistake));
}

}  // namespace
}  // namespace gradcheck
