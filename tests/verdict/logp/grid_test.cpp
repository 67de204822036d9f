// SPDX-License-Identifier: Apache-2.0
#include "verdict/logp/grid.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/toy_policy.h"

namespace gradcheck {
namespace {

LogProbShard shard_of(toy::Round round, std::size_t tokens = 4000) {
  std::mt19937_64 random(3);
  std::exponential_distribution<double> surprisal(0.5);
  LogProbShard shard;
  for (std::size_t i = 0; i < tokens; ++i) {
    shard.old_values.push_back(toy::as_f32(-surprisal(random) - 0.01));
    shard.new_values.push_back(round(shard.old_values.back()));
  }
  shard.offsets = {0, tokens};
  return shard;
}

Grid grid_of_new(const LogProbShard& shard) {
  const LogProbShard* pointer = &shard;
  return grid_of({&pointer, 1}, Side::new_side).grid;
}

double log_of_rounded(double value) { return toy::as_f32(std::log(toy::as_bf16(std::exp(value)))); }

TEST(Grid, OfFp32IsNone) { EXPECT_EQ(grid_of_new(shard_of(toy::as_f32)), Grid::none); }

TEST(Grid, OfBf16AndF16IsSeen) {
  EXPECT_EQ(grid_of_new(shard_of(toy::as_bf16)), Grid::bf16);
  EXPECT_EQ(grid_of_new(shard_of(toy::as_f16)), Grid::f16);
}

TEST(Grid, OfTheLogarithmOfACoarseSoftmaxIsSeen) {
  EXPECT_EQ(grid_of_new(shard_of(log_of_rounded)), Grid::log_of_bf16);
}

TEST(Grid, OfADifferenceOfCoarseNumbersIsSeen) {
  const auto difference = [](double value) { return std::round(value * 16) / 16; };
  EXPECT_EQ(grid_of_new(shard_of(difference)), Grid::bf16_difference);
}

TEST(Grid, ThatMostValuesMissIsNone) {
  LogProbShard shard = shard_of(toy::as_bf16);
  for (std::size_t i = 0; i < shard.new_values.size(); i += 100) {
    shard.new_values[i] = shard.old_values[i];
  }
  EXPECT_EQ(grid_of_new(shard), Grid::none);
}

TEST(Grid, OfAFewTokensIsNotClaimed) {
  EXPECT_EQ(grid_of_new(shard_of(toy::as_bf16, 12)), Grid::none);
}

TEST(Grid, OfRoundNumbersTellsNothing) {
  EXPECT_EQ(grid_of_new(shard_of([](double value) { return std::floor(value); })), Grid::none);
}

TEST(Grid, ExplainsTheRoundedSide) {
  const LogProbShard shard = shard_of(toy::as_bf16);
  const LogProbShard* pointer = &shard;
  EXPECT_EQ(share_explained({&pointer, 1}, Side::new_side, Grid::bf16), 1);
  EXPECT_LT(share_explained({&pointer, 1}, Side::old_side, Grid::bf16), 0.01);
}

}  // namespace
}  // namespace gradcheck
