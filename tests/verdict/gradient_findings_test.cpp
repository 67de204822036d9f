// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verdict/made_up.h"

namespace gradcheck {
namespace {

using namespace made_up;
using testing::HasSubstr;

// An optimizer that owns all tensors but the second.
Recipe optimizer_without_the_second() {
  Recipe recipe;
  recipe.edit = [](EvidenceTable& table) {
    for (const int rank : {0, 1}) {
      edit_steps(table, rank,
                 [](EventRecord& event) { event.names = {"embed", "policy/layer.bias"}; });
    }
  };
  return recipe;
}

TEST(GradientFindings, TensorThatNoOptimizerNamesIsNotJudgedButRecorded) {
  const ArmReport arm = judged(optimizer_without_the_second());
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_EQ(arm.totals.compared, 2);
  EXPECT_EQ(arm.totals.unrecorded, 0);
}

TEST(GradientFindings, UnrecordedTensorDoesNotEscapeThroughTheOptimizersNames) {
  for (const int first : {0, 1}) {
    Recipe recipe = optimizer_without_the_second();
    recipe.recorded = [first](const At& at, Stage stage) {
      return !(stage == Stage::reduced && at.tensor == 1 && at.rank >= first);
    };
    const ArmReport arm = judged(recipe);
    EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
    EXPECT_EQ(arm.totals.unrecorded, 1);
    EXPECT_EQ(arm.models.front().unrecorded, 1);
    EXPECT_EQ(arm.steps.front().unrecorded, 1);
    ASSERT_TRUE(has_code(arm, 604)) << told(arm);
    EXPECT_EQ(find_code_in(arm, 604)->names, std::vector<std::string>{"layer.weight"});
  }
}

TEST(GradientFindings, InventoryOfAModelThatNeverRanIsUnrecorded) {
  Recipe recipe;
  recipe.edit = [](EvidenceTable& table) {
    for (const int rank : {0, 1}) {
      TensorRecord idle;
      idle.model = "reference";
      idle.name = "weight";
      idle.shape = {1};
      idle.state = TensorState::finite;
      idle.requires_grad = true;
      idle.stats = measure(DType::f32, to_bytes(DType::f32, {1.0}));
      table.put(rank, idle, 5000);
      table.rank(rank).marks.push_back({0, 0, Stage::start, "reference", 1});
    }
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_EQ(arm.totals.inventory, 4);
  EXPECT_EQ(arm.totals.unrecorded, 1);
  EXPECT_THAT(told(arm), HasSubstr("not recorded at `reduced`: 1 tensor"));
}

}  // namespace
}  // namespace gradcheck
