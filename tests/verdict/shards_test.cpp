// SPDX-License-Identifier: Apache-2.0
#include "verdict/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verdict/made_up.h"

namespace gradcheck {
namespace {

using namespace made_up;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kTensors = 3;  // of the default recipe

bool is_gradient(Stage stage) { return stage == Stage::reduced || stage == Stage::final; }

// Even parts, the last one shorter or empty, as ZeRO cuts them.
ShardRange part_of(int rank, int ranks, std::size_t n) {
  const std::uint64_t whole = n;
  const std::uint64_t size =
      (whole + static_cast<std::uint64_t>(ranks) - 1) / static_cast<std::uint64_t>(ranks);
  const std::uint64_t begin = std::min(whole, size * static_cast<std::uint64_t>(rank));
  return {begin, std::min(whole, begin + size) - begin};
}

// ZeRO-2: every rank owns a part of each gradient, parameters are whole.
Recipe sharded(int ranks = 2, bool payloads = true) {
  Recipe recipe;
  recipe.ranks = ranks;
  recipe.payloads = payloads;
  const auto tensors = recipe.tensors;
  recipe.shard = [ranks, tensors](const At& at, Stage stage) -> std::optional<ShardRange> {
    if (!is_gradient(stage)) return std::nullopt;
    return part_of(at.rank, ranks, tensors[at.tensor].n);
  };
  return recipe;
}

// The parts of one rank, changed.
template <class Change>
Recipe with_parts(Change change, bool payloads = true) {
  Recipe recipe = sharded(2, payloads);
  const auto whole = recipe.shard;
  recipe.shard = [whole, change](const At& at, Stage stage) {
    auto part = whole(at, stage);
    if (part) change(at, stage, *part);
    return part;
  };
  return recipe;
}

// What is asked about evidence does not change when its shards are put together.
TEST(Shards, TheLastStepMayBeShorterWhereTheProgramSaysSo) {
  Recipe recipe = sharded();
  recipe.micros = 2;
  const MadeUpRun run(recipe);
  const std::vector<PlanRule> rules;
  const PayloadViews none;
  JudgeInput input{run.table(), rules, none, 1, 3};
  EXPECT_EQ(judge(input).outcome, Outcome::inconclusive);
  input.remainder = 2;
  const ArmReport arm = judge(input);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
}

// --- what must not pass

TEST(Shards, MissingShardForbidsConsistent) {
  Recipe recipe = sharded();
  recipe.recorded = [](const At& at, Stage stage) {
    return !(stage == Stage::reduced && at.rank == 1 && at.tensor == 1);
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_EQ(arm.totals.unrecorded, 1);
  EXPECT_EQ(arm.totals.compared, kTensors - 1);
}

TEST(Shards, RankWithoutAnyShardForbidsConsistent) {
  Recipe recipe = sharded();
  recipe.recorded = [](const At& at, Stage stage) {
    return !(stage == Stage::reduced && at.rank == 1);
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_EQ(arm.totals.compared, 0);
}

TEST(Shards, OverlapForbidsConsistent) {
  for (const bool payloads : {true, false}) {
    const ArmReport arm = judged(with_parts(
        [](const At& at, Stage, ShardRange& part) {
          if (at.rank == 0 && at.tensor == 1) part.n += 5;
        },
        payloads));
    EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
    EXPECT_THAT(told(arm), HasSubstr("in the shards of two ranks"));
    EXPECT_EQ(arm.totals.compared, kTensors - 1);
  }
}

TEST(Shards, SamePartOnEveryRankForbidsConsistent) {
  const ArmReport arm =
      judged(with_parts([](const At&, Stage, ShardRange& part) { part.offset = 0; }));
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_EQ(arm.totals.compared, 0);
}

TEST(Shards, HoleForbidsConsistent) {
  const ArmReport arm = judged(with_parts([](const At& at, Stage, ShardRange& part) {
    if (at.rank == 0 && at.tensor == 1) --part.n;
  }));
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_THAT(told(arm), HasSubstr("element 149 is in no rank's shard"));
}

TEST(Shards, MissingEndForbidsConsistent) {
  const ArmReport arm = judged(with_parts([](const At& at, Stage, ShardRange& part) {
    if (at.rank == 1 && at.tensor == 1) --part.n;
  }));
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_THAT(told(arm), HasSubstr("element 299 is in no rank's shard"));
}

TEST(Shards, WholeTensorBesideAShardForbidsConsistent) {
  Recipe recipe = sharded();
  const auto whole = recipe.shard;
  recipe.shard = [whole](const At& at, Stage stage) {
    return at.rank == 1 ? std::nullopt : whole(at, stage);
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_THAT(told(arm), HasSubstr("holds a whole tensor"));
}

// The wrapper promised parts; equal whole tensors are judged as such, and these are not reduced.
TEST(Shards, WholeLocalGradientsUnderAShardingWrapperDoNotPass) {
  Recipe recipe = sharded();
  recipe.shard = [](const At&, Stage) { return std::optional<ShardRange>(); };
  recipe.reduce = [](const std::vector<Values>& ranks, const At&) { return ranks; };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told(arm);
  EXPECT_EQ(arm.totals.differed, kTensors);
}

// Elements of another place: sketches at the claimed index tell it too.
TEST(Shards, SwappedPartsAreWrong) {
  for (const bool payloads : {true, false}) {
    Recipe recipe = sharded(2, payloads);
    recipe.tensors = {{"embed", 256}};
    recipe.shard = [](const At& at, Stage stage) -> std::optional<ShardRange> {
      if (!is_gradient(stage)) return std::nullopt;
      return part_of(at.rank, 2, 256);
    };
    recipe.reduce = [](const std::vector<Values>& ranks, const At&) {
      Values mean = ddp_mean(DType::f32, ranks);
      std::rotate(mean.begin(), mean.begin() + 128, mean.end());
      return Reduced(ranks.size(), mean);
    };
    const ArmReport arm = judged(recipe);
    EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told(arm);
    EXPECT_EQ(arm.totals.wrong, 1);
    EXPECT_TRUE(has_code(arm, 209)) << told(arm);
  }
}

TEST(Shards, OneRanksPartThatWasNotReducedIsNamed) {
  Recipe recipe = sharded();
  recipe.reduce = [](const std::vector<Values>& ranks, const At&) {
    return Reduced{ddp_mean(DType::f32, ranks), ranks[1]};
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told(arm);
  EXPECT_EQ(arm.totals.wrong, kTensors);
  EXPECT_EQ(arm.totals.differed, 0);
  ASSERT_TRUE(has_code(arm, 201)) << told(arm);
  EXPECT_THAT(find_code_in(arm, 201)->ranks, ElementsAre(1));
}

TEST(Shards, OneTensorsPartThatWasNotReducedIsNamed) {
  Recipe recipe = sharded();
  recipe.reduce = [](const std::vector<Values>& ranks, const At& at) {
    const Values mean = ddp_mean(DType::f32, ranks);
    return Reduced{mean, at.tensor == 1 ? ranks[1] : mean};
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.totals.wrong, 1) << told(arm);
  EXPECT_TRUE(has_code(arm, 202)) << told(arm);
}

TEST(Shards, ForgottenDivisionOfOneRanksPartIsNamed) {
  Recipe recipe = sharded(3);
  recipe.reduce = [](const std::vector<Values>& ranks, const At&) {
    const Values mean = ddp_mean(DType::f32, ranks);
    return Reduced{mean, ring_sum(DType::f32, ranks), mean};
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.totals.wrong, kTensors) << told(arm);
  ASSERT_TRUE(has_code(arm, 204)) << told(arm);
  EXPECT_THAT(find_code_in(arm, 204)->ranks, ElementsAre(1));
}

TEST(Shards, ForgottenDivisionAndLostRankAreWrongWithAndWithoutElements) {
  for (const bool payloads : {true, false}) {
    Recipe sum = sharded(2, payloads);
    sum.reduce = [](const std::vector<Values>& ranks, const At&) {
      return Reduced(ranks.size(), ring_sum(DType::f32, ranks));
    };
    const ArmReport summed = judged(sum);
    EXPECT_EQ(summed.totals.wrong, kTensors) << told(summed);
    EXPECT_TRUE(has_code(summed, 204)) << told(summed);
    Recipe lost = sharded(3, payloads);
    lost.reduce = [](const std::vector<Values>& ranks, const At&) {
      auto kept = ranks;
      kept[2].assign(kept[2].size(), 0.0);
      return Reduced(ranks.size(), ddp_mean(DType::f32, kept));
    };
    const ArmReport one = judged(lost);
    EXPECT_EQ(one.outcome, Outcome::inconsistent) << told(one);
    ASSERT_TRUE(has_code(one, 207)) << told(one);
    EXPECT_THAT(find_code_in(one, 207)->ranks, ElementsAre(2));
  }
}

TEST(Shards, NothingReducedIsFoundBySketchesAlone) {
  Recipe recipe = sharded(2, false);
  recipe.reduce = [](const std::vector<Values>& ranks, const At&) { return ranks; };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told(arm);
  EXPECT_EQ(arm.totals.wrong, kTensors);
}

// Whole parameters of ZeRO-2 must agree although gradients are parts.
TEST(Shards, ParametersThatPartAfterTheStepAreFound) {
  Recipe recipe = sharded();
  recipe.move = [](const At& at, const Values& values) {
    return at.rank == 1 ? plus(DType::f32, values, Values(values.size(), 1.0)) : values;
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told(arm);
  EXPECT_TRUE(has_code(arm, 302)) << told(arm);
}

TEST(Shards, ParametersWithAHoleForbidConsistent) {
  Recipe recipe = sharded();
  recipe.shard = [](const At& at, Stage stage) -> std::optional<ShardRange> {
    if (stage == Stage::local) return std::nullopt;
    const std::size_t n = Recipe().tensors[at.tensor].n;
    ShardRange part = part_of(at.rank, 2, n);
    if (stage == Stage::after && at.rank == 0) --part.n;
    return part;
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_THAT(told(arm), HasSubstr("shards at `after`"));
}

TEST(Shards, VacuousLocalsProveNothing) {
  Recipe recipe = sharded();
  recipe.local = [](const At& at) -> Maybe { return normal(Recipe().tensors[at.tensor].n, 3); };
  EXPECT_EQ(judged(recipe).outcome, Outcome::inconclusive);
}

TEST(Shards, UndeclaredReductionOfShardsProvesNothing) {
  Recipe recipe = sharded();
  recipe.edit = [](EvidenceTable& table) {
    for (int rank = 0; rank < 2; ++rank) table.rank(rank).wrappers.front().reduce = "unknown";
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_EQ(arm.totals.compared, 0);
}

// --- what must pass

TEST(Shards, RightPartsAreConsistent) {
  for (const int ranks : {2, 3, 4, 7}) {
    for (const bool payloads : {true, false}) {
      const ArmReport arm = judged(sharded(ranks, payloads));
      EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
      EXPECT_EQ(arm.totals.compared, kTensors);
      EXPECT_EQ(arm.totals.differed, 0);
      EXPECT_EQ(arm.totals.wrong, 0);
    }
  }
}

TEST(Shards, EmptyPartsAndSeveralMicroStepsAreConsistent) {
  Recipe recipe = sharded(4);
  recipe.tensors = {{"norm", 2}, {"matrix", 300}};
  recipe.shard = [](const At& at, Stage stage) -> std::optional<ShardRange> {
    if (!is_gradient(stage)) return std::nullopt;
    return part_of(at.rank, 4, at.tensor == 0 ? 2 : 300);
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_EQ(arm.totals.compared, 2);
}

TEST(Shards, ParametersInPartsAreComparedByWhatTheyCover) {
  Recipe recipe = sharded();
  recipe.shard = [](const At& at, Stage stage) -> std::optional<ShardRange> {
    if (stage == Stage::local) return std::nullopt;
    return part_of(at.rank, 2, Recipe().tensors[at.tensor].n);
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_EQ(arm.parameters.compared, kTensors);
  EXPECT_EQ(arm.parameters.moved, kTensors);
}

}  // namespace
}  // namespace gradcheck
