// SPDX-License-Identifier: Apache-2.0
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
