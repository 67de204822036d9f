// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/verdict/made_up.h"

namespace gradcheck {
namespace {

using namespace made_up;

constexpr std::int64_t kTensors = 3;  // of the default recipe

TEST(Sides, ParametersThatStartDifferentAreFound) {
  Recipe recipe;
  recipe.start = [](const At& at) {
    return normal(64, 10 + at.tensor + (at.tensor == 1 ? static_cast<std::uint64_t>(at.rank) : 0));
  };
  recipe.tensors = {{"a", 64}, {"b", 64}};
  const ArmReport arm = judged(recipe);
  EXPECT_TRUE(has_code(arm, 301)) << told(arm);
  EXPECT_TRUE(has_cause(arm, Cause::start_mismatch));
  EXPECT_EQ(arm.parameters.differed_at_start, 1);
}

TEST(Sides, ParametersThatDifferAfterTheStepAreFound) {
  Recipe recipe;
  recipe.move = [](const At& at, Values values) {
    if (at.rank == 1) values[0] += 1;
    return values;
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconsistent);
  EXPECT_TRUE(has_code(arm, 302)) << told(arm);
}

// A head that shares the embedding's storage is the same difference once more.
void add_tied_head(EvidenceTable& table) {
  for (int rank = 0; rank < table.world_size(); ++rank) {
    for (MarkRecord& mark : table.rank(rank).marks) {
      if (mark.stage != Stage::start && mark.stage != Stage::after) continue;
      TensorRecord head;
      head.stage = mark.stage;
      head.model = mark.model;
      head.name = "head";
      head.tied_to = "embed";
      head.shape = {2};
      const double value = mark.stage == Stage::after ? rank + 1.0 : 1.0;
      head.stats = measure(DType::f32, to_bytes(DType::f32, {value, 2}));
      head.state = state_of(head.stats);
      table.put(rank, head, 100'000);
      ++mark.tensors;
    }
  }
}

TEST(Sides, TiedNamesAreCountedOnce) {
  Recipe recipe;
  recipe.move = [](const At& at, Values values) {
    if (at.rank == 1 && at.tensor == 0) values[0] += 1;
    return values;
  };
  recipe.edit = add_tied_head;
  const ArmReport arm = judged(recipe);
  ASSERT_TRUE(has_code(arm, 302)) << told(arm);
  for (const Finding& finding : arm.findings) {
    if (finding.code != 302) continue;
    EXPECT_EQ(finding.count, 1u) << finding.message;
  }
}

TEST(Sides, ParameterThatNeverMovesIsFound) {
  Recipe recipe;
  recipe.learning_rate = 0;
  const ArmReport arm = judged(recipe);
  EXPECT_TRUE(has_code(arm, 303)) << told(arm);
  EXPECT_TRUE(has_cause(arm, Cause::not_stepped));
  EXPECT_EQ(arm.parameters.moved, 0);
}

TEST(Sides, Bf16UpdateBelowResolutionIsNoError) {
  Recipe recipe;
  recipe.dtype = DType::bf16;
  recipe.learning_rate = 0;
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_TRUE(has_code(arm, 303));
}

TEST(Sides, UnseenFactorBeforeTheStepIsFound) {
  Recipe recipe;
  recipe.finish = [](const At&, const Values& values) { return times(DType::f32, values, 0.3); };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconsistent);
  EXPECT_TRUE(has_code(arm, 204)) << told(arm);
}

TEST(Sides, RecordedClippingExplainsTheFactor) {
  Recipe recipe;
  recipe.finish = [](const At&, const Values& values) {
    return times(DType::f32, values, static_cast<float>(1.0 / (5.0 + 1e-6)));
  };
  recipe.edit = [](EvidenceTable& table) {
    for (const int rank : {0, 1}) {
      EventRecord clip;
      clip.type = EventType::clip;
      clip.norm = 5;
      clip.max_norm = 1;
      table.rank(rank).events.push_back(clip);
    }
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
}

TEST(Sides, FinalThatDiffersThoughReducedAgreesIsFound) {
  Recipe recipe;
  recipe.finish = [](const At& at, Values values) {
    if (at.rank == 1) values[0] += 1;
    return values;
  };
  const ArmReport arm = judged(recipe);
  EXPECT_TRUE(has_code(arm, 101)) << told(arm);
  EXPECT_EQ(arm.totals.differed, 0);
  EXPECT_EQ(arm.finals.differed_after, kTensors);
}

// With one element of the first tensor that is not finite at `final` on ranks from `first` on.
Recipe overflow_before_the_step(int first) {
  Recipe recipe;
  recipe.finish = [first](const At& at, Values values) {
    if (at.tensor == 0 && at.rank >= first) values[3] = std::nan("");
    return values;
  };
  return recipe;
}

TEST(Sides, NanMadeBetweenReductionAndStepIsNoNote) {
  const ArmReport everywhere = judged(overflow_before_the_step(0));
  EXPECT_EQ(everywhere.outcome, Outcome::inconsistent) << told(everywhere);
  ASSERT_TRUE(has_code(everywhere, 701)) << told(everywhere);
  EXPECT_EQ(find_code_in(everywhere, 701)->ranks, (std::vector<int>{0, 1}));
  EXPECT_THAT(told(everywhere), testing::HasSubstr("at `final`, though finite at `reduced`"));
  const ArmReport one = judged(overflow_before_the_step(1));
  ASSERT_TRUE(has_code(one, 701)) << told(one);
  EXPECT_EQ(find_code_in(one, 701)->ranks, std::vector<int>{1}) << told(one);
}

// The gradient of the first tensor is dropped before the step on ranks from `first` on.
Recipe dropped_before_the_step(int first) {
  Recipe recipe;
  recipe.steps = 2;
  recipe.finish = [first](const At& at, const Values& values) -> Maybe {
    if (at.step == 1 && at.tensor == 0 && at.rank >= first) return std::nullopt;
    return values;
  };
  return recipe;
}

TEST(Sides, GradientDroppedBeforeTheStepIsFound) {
  const ArmReport everywhere = judged(dropped_before_the_step(0));
  EXPECT_EQ(everywhere.outcome, Outcome::inconclusive) << told(everywhere);
  EXPECT_THAT(told(everywhere), testing::HasSubstr("cleared between the backward and"));
  const ArmReport one = judged(dropped_before_the_step(1));
  EXPECT_EQ(one.outcome, Outcome::inconsistent) << told(one);
  ASSERT_TRUE(has_code(one, 102)) << told(one);
  EXPECT_EQ(find_code_in(one, 102)->ranks, std::vector<int>{1});
}

Recipe undeclared_recipe() {
  Recipe recipe;
  recipe.wrapped = false;
  recipe.armed = [](const At&) { return true; };
  return recipe;
}

TEST(Sides, UndeclaredFinalThatDiffersAccusesNobody) {
  Recipe recipe = undeclared_recipe();
  recipe.finish = [](const At& at, Values values) {
    if (at.rank == 1) values[0] += 1;
    return values;
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_TRUE(has_code(arm, 606)) << told(arm);
  EXPECT_FALSE(has_code(arm, 101)) << told(arm);
}

TEST(Sides, UndeclaredParametersThatDifferProveNothing) {
  Recipe recipe = undeclared_recipe();
  recipe.start = [](const At& at) { return normal(64, static_cast<std::uint64_t>(at.rank)); };
  recipe.tensors = {{"a", 64}};
  const ArmReport start = judged(recipe);
  EXPECT_EQ(start.outcome, Outcome::inconclusive) << told(start);
  EXPECT_THAT(told(start),
              testing::HasSubstr("undeclared tensors differ: 1; parameters at `start`"));
  recipe.start = {};
  recipe.move = [](const At& at, Values values) {
    if (at.rank == 1) values[0] += 1;
    return values;
  };
  const ArmReport after = judged(recipe);
  EXPECT_EQ(after.outcome, Outcome::inconclusive) << told(after);
  EXPECT_THAT(told(after), testing::HasSubstr("parameters at `after`"));
}

TEST(Sides, UndeclaredFrozenParameterThatDiffersProvesNothing) {
  Recipe recipe = undeclared_recipe();
  recipe.edit = [](EvidenceTable& table) {
    for (const int rank : {0, 1}) {
      TensorRecord frozen;
      frozen.model = "policy";
      frozen.name = "frozen";
      frozen.shape = {1};
      frozen.state = TensorState::finite;
      frozen.requires_grad = false;
      frozen.stats = measure(DType::f32, to_bytes(DType::f32, {1.0 + rank}));
      for (const Stage stage : {Stage::start, Stage::after}) {
        frozen.stage = stage;
        table.put(rank, frozen, 5000);
        for (MarkRecord& mark : table.rank(rank).marks) mark.tensors += mark.stage == stage;
      }
    }
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_TRUE(has_code(arm, 606)) << told(arm);
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
