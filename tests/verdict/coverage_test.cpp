// SPDX-License-Identifier: Apache-2.0
#include "verdict/coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verdict/made_up.h"

namespace gradcheck {
namespace {

using namespace made_up;
using testing::Contains;
using testing::HasSubstr;

TEST(Coverage, StepTakenWithoutAnyGradientEvidenceIsNeverConsistent) {
  Recipe recipe;
  recipe.edit = [](EvidenceTable& table) {
    for (const int rank : {0, 1}) {
      EventRecord step;
      step.type = EventType::optimizer_step;
      step.step = 1;
      step.model = "policy";
      table.rank(rank).events.push_back(step);
    }
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_TRUE(has_code(arm, 604));
  EXPECT_THAT(told(arm), HasSubstr("step 1 was taken, but no gradient of it was recorded"));
  EXPECT_EQ(arm.totals.unrecorded, 3);
}

TEST(Coverage, SkippedStepWithoutGradientsIsNoGap) {
  Recipe recipe;
  recipe.edit = [](EvidenceTable& table) {
    for (const int rank : {0, 1}) {
      EventRecord step;
      step.type = EventType::optimizer_step;
      step.step = 1;
      step.skipped = true;
      table.rank(rank).events.push_back(step);
    }
  };
  EXPECT_EQ(judged(recipe).outcome, Outcome::consistent) << told(judged(recipe));
}

TEST(Coverage, FewerMicroStepsThanAskedForAreInconclusive) {
  Recipe recipe;
  recipe.micros = 2;
  const MadeUpRun run(recipe);
  const std::vector<PlanRule> rules;
  const PayloadViews none;
  const ArmReport arm = judge({run.table(), rules, none, 1, 3});
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_THAT(told(arm), HasSubstr("2 of 3 micro-steps were recorded\n"));
  EXPECT_EQ(judge({run.table(), rules, none, 1, 2}).outcome, Outcome::consistent);
  EXPECT_EQ(judge({run.table(), rules, none, 1, 3, false}).outcome, Outcome::consistent);
}

TEST(Coverage, OnlyTheLastStepMayBeShorterWhereTheProgramSaysSo) {
  Recipe recipe;
  recipe.micros = 2;
  const MadeUpRun run(recipe);
  const std::vector<PlanRule> rules;
  const PayloadViews none;
  JudgeInput last{run.table(), rules, none, 1, 3};
  last.remainder = 2;
  EXPECT_EQ(judge(last).outcome, Outcome::consistent);
  last.remainder = 1;
  EXPECT_EQ(judge(last).outcome, Outcome::inconclusive);
  JudgeInput first{run.table(), rules, none, 2, 3};
  first.remainder = 2;
  EXPECT_EQ(judge(first).outcome, Outcome::inconclusive);
}

TEST(Coverage, StepSkippedBySomeRanksOnlyIsAScalerMismatch) {
  Recipe recipe;
  recipe.edit = [](EvidenceTable& table) {
    edit_steps(table, 1, [](EventRecord& event) { event.skipped = true; });
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  ASSERT_TRUE(has_code(arm, 804)) << told(arm);
  EXPECT_EQ(find_code_in(arm, 804)->message,
            "ranks disagree on their steps; step 0 was skipped by rank 1 only");
  EXPECT_EQ(find_code_in(arm, 804)->severity, Severity::error);
  EXPECT_TRUE(has_cause(arm, Cause::scaler_mismatch));
}

TEST(Coverage, StepSkippedBySomeRanksWhoseParametersPartIsInconsistent) {
  Recipe recipe;
  recipe.edit = [](EvidenceTable& table) {
    edit_steps(table, 1, [](EventRecord& event) { event.skipped = true; });
  };
  recipe.move = [](const At& at, Values values) {
    if (at.rank == 1) values[0] += 1;
    return values;
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told(arm);
  EXPECT_TRUE(has_cause(arm, Cause::scaler_mismatch));
}

TEST(Coverage, EveryStepSkippedIsInconclusive) {
  Recipe recipe;
  recipe.steps = 2;
  recipe.edit = [](EvidenceTable& table) {
    for (const int rank : {0, 1}) {
      edit_steps(table, rank, [](EventRecord& event) { event.skipped = true; });
    }
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_THAT(arm.headline, HasSubstr("every step was skipped"));
  EXPECT_FALSE(has_code(arm, 804));
}

TEST(Coverage, WarmUpStepSkippedByEveryRankIsANote) {
  Recipe recipe;
  recipe.steps = 2;
  recipe.edit = [](EvidenceTable& table) {
    for (const int rank : {0, 1}) {
      edit_steps(table, rank, [](EventRecord& event) { event.skipped = event.step == 0; });
    }
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_THAT(arm.notes, Contains("step 0 was skipped by every rank and proves nothing"));
}

}  // namespace
}  // namespace gradcheck
