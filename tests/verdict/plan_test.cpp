// SPDX-License-Identifier: Apache-2.0
#include "verdict/plan.h"

#include <gtest/gtest.h>

#include "tests/verdict/made_up.h"

namespace gradcheck {
namespace {

using namespace made_up;

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

}  // namespace
}  // namespace gradcheck
