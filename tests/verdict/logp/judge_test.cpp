// SPDX-License-Identifier: Apache-2.0
#include "verdict/logp/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace gradcheck {
namespace {

using testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double as_f32(double value) { return static_cast<float>(value); }

double as_bf16(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000U;
  return std::bit_cast<float>(rounded);
}

LogProbShard shard_of(std::size_t rows, std::size_t tokens, unsigned seed = 1) {
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> surprisal(0.5);
  LogProbShard shard;
  for (std::size_t row = 0; row <= rows; ++row) shard.offsets.push_back(row * tokens);
  for (std::size_t i = 0; i < rows * tokens; ++i) {
    shard.old_values.push_back(as_f32(-surprisal(random) - 0.01));
  }
  shard.new_values = shard.old_values;
  return shard;
}

LogProbReading judged(const LogProbShard& shard, const LogProbConditions& conditions = {}) {
  return judge_log_probs({&shard, 1}, conditions);
}

std::vector<int> codes_of(const LogProbReading& reading) {
  std::vector<int> codes;
  for (const Finding& finding : reading.findings) codes.push_back(finding.code);
  return codes;
}

TEST(Judge, EqualLogProbsAreBitwiseAndConsistent) {
  const LogProbReading reading = judged(shard_of(4, 8));
  EXPECT_EQ(reading.outcome, Outcome::consistent);
  EXPECT_TRUE(reading.bitwise);
  EXPECT_EQ(reading.headline, "old and new are bitwise equal: 32 tokens");
  EXPECT_EQ(reading.statistics.max_abs, 0);
  EXPECT_TRUE(reading.findings.empty());
  EXPECT_TRUE(reading.causes.empty());
}

TEST(Judge, NewStoredInBf16IsCertainThoughSmall) {
  LogProbShard shard = shard_of(16, 64);
  for (double& value : shard.new_values) value = as_bf16(value);
  const LogProbReading reading = judged(shard);
  EXPECT_EQ(reading.outcome, Outcome::inconsistent);
  EXPECT_THAT(codes_of(reading), testing::ElementsAre(502));
  ASSERT_FALSE(reading.causes.empty());
  EXPECT_EQ(reading.causes.front().cause, Cause::bf16_log_softmax);
  EXPECT_EQ(reading.causes.front().confidence, Confidence::certain);
  EXPECT_EQ(reading.regime, Regime::same_stack);
  EXPECT_THAT(reading.headline, HasSubstr("new was stored in bf16"));
  EXPECT_THAT(reading.headline, HasSubstr("harm small"));
}

TEST(Judge, Bf16OfAnotherEngineIsAWarningBelowItsNoise) {
  LogProbShard shard = shard_of(16, 64);
  for (double& value : shard.old_values) value = as_bf16(value);
  LogProbConditions conditions;
  conditions.regime = Regime::other_engine;
  const LogProbReading reading = judged(shard, conditions);
  EXPECT_EQ(reading.outcome, Outcome::consistent);
  ASSERT_EQ(codes_of(reading), std::vector<int>{502});
  EXPECT_EQ(reading.findings.front().severity, Severity::warning);
}

TEST(Judge, OldThatIsNewProvesNothing) {
  LogProbShard shard = shard_of(4, 8);
  shard.aliased = true;
  const LogProbReading reading = judged(shard);
  EXPECT_EQ(reading.outcome, Outcome::inconclusive);
  EXPECT_EQ(codes_of(reading), std::vector<int>{605});
  EXPECT_THAT(reading.headline, HasSubstr("ratio is 1 by construction"));
}

TEST(Judge, AliasedRanksAreLeftOutWhereOthersRemain) {
  std::vector<LogProbShard> shards = {shard_of(4, 8), shard_of(4, 8, 2)};
  shards[0].aliased = true;
  shards[1].rank = 1;
  const LogProbReading reading = judge_log_probs(shards, {});
  EXPECT_EQ(reading.outcome, Outcome::consistent);
  EXPECT_EQ(reading.counts.ranks, 1);
  EXPECT_THAT(reading.notes, testing::ElementsAre(HasSubstr("1 of 2 files left out")));
}

TEST(Judge, AnOptimizerStepBetweenOldAndNewIsInconclusive) {
  LogProbShard shard = shard_of(4, 8);
  shard.updates = 1;
  const LogProbReading reading = judged(shard);
  EXPECT_EQ(reading.outcome, Outcome::inconclusive);
  EXPECT_EQ(reading.causes.front().cause, Cause::after_an_update);
  LogProbConditions conditions;
  conditions.lag = 1;
  EXPECT_EQ(judged(shard, conditions).outcome, Outcome::consistent);
}

TEST(Judge, NothingToCompareIsNeverAPass) {
  EXPECT_EQ(judge_log_probs({}, {}).outcome, Outcome::inconclusive);
  LogProbShard shard = shard_of(4, 8);
  shard.mask.assign(32, 0);
  const LogProbReading reading = judged(shard);
  EXPECT_EQ(reading.outcome, Outcome::inconclusive);
  EXPECT_EQ(codes_of(reading), std::vector<int>{604});
  EXPECT_EQ(judged(shard_of(0, 8)).outcome, Outcome::inconclusive);
}

TEST(Judge, ValuesThatAreNotFiniteFailWhateverTheRestSays) {
  for (const double bad : {kNaN, kInfinity, -kInfinity}) {
    for (const bool old_side : {false, true}) {
      LogProbShard shard = shard_of(4, 8);
      (old_side ? shard.old_values : shard.new_values)[5] = bad;
      const LogProbReading reading = judged(shard);
      EXPECT_EQ(reading.outcome, Outcome::inconsistent);
      EXPECT_THAT(codes_of(reading), testing::Contains(503));
      EXPECT_EQ(reading.counts.compared, 31);
    }
  }
}

TEST(Judge, AllValuesNaNIsInconsistentNotVacuous) {
  LogProbShard shard = shard_of(2, 4);
  shard.new_values.assign(8, kNaN);
  EXPECT_EQ(judged(shard).outcome, Outcome::inconsistent);
}

TEST(Judge, NaNOutsideTheMaskIsPadding) {
  LogProbShard shard = shard_of(4, 8);
  shard.mask.assign(32, 1);
  shard.mask[31] = 0;
  shard.new_values[31] = kNaN;
  const LogProbReading reading = judged(shard);
  EXPECT_EQ(reading.outcome, Outcome::consistent);
  EXPECT_EQ(reading.counts.nonfinite_masked_out, 1);
  EXPECT_EQ(reading.counts.masked_out, 1);
}

TEST(Judge, ALogProbAboveZeroIsNone) {
  LogProbShard shard = shard_of(4, 8);
  shard.new_values[3] = 0.06;
  EXPECT_THAT(codes_of(judged(shard)), testing::Contains(503));
}

TEST(Judge, ZerosOfAbsentLogProbsAreFoundZerosOfCertainTokensAreNot) {
  LogProbShard shard = shard_of(8, 32);
  for (std::size_t row = 0; row < 8; ++row) {
    shard.new_values[row * 32 + 7] = shard.old_values[row * 32 + 7] = 0.0;
  }
  EXPECT_TRUE(judged(shard).findings.empty());
  shard.new_values[31] = -3;
  shard.old_values[31] = 0.0;
  const LogProbReading reading = judged(shard);
  EXPECT_THAT(codes_of(reading), testing::Contains(505));
  EXPECT_EQ(reading.causes.front().cause, Cause::missing_as_zero);
  EXPECT_THAT(reading.causes.front().evidence, testing::Contains("1 at the end of their rows"));
}

TEST(Judge, AHandfulOfTokensWithNoiseIsInconclusiveAndSaysHowManyItNeeds) {
  LogProbShard shard = shard_of(2, 4);
  for (std::size_t i = 0; i < 8; ++i) shard.new_values[i] += as_f32(i % 2 == 0 ? 0.02 : -0.021);
  const LogProbReading reading = judged(shard);
  EXPECT_EQ(reading.outcome, Outcome::inconclusive);
  EXPECT_EQ(codes_of(reading), std::vector<int>{607});
  EXPECT_GT(reading.tokens_needed, 8);
}

TEST(Judge, NoiseOfAnotherEngineRaisesNothing) {
  LogProbShard shard = shard_of(64, 128);
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(0, 0.015);
  for (double& value : shard.new_values) value = as_f32(std::min(value + noise(random), 0.0));
  const LogProbReading reading = judged(shard);
  EXPECT_EQ(reading.outcome, Outcome::consistent);
  EXPECT_TRUE(reading.findings.empty());
  EXPECT_EQ(reading.regime_source, "assumed");
  EXPECT_EQ(reading.band.level, BandLevel::pass);
}

TEST(Judge, ALargeDifferenceFailsWithoutASignature) {
  LogProbShard shard = shard_of(64, 128);
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(0, 0.4);
  for (double& value : shard.new_values) value = as_f32(std::min(value + noise(random), 0.0));
  const LogProbReading reading = judged(shard);
  EXPECT_EQ(reading.outcome, Outcome::inconsistent);
  EXPECT_THAT(codes_of(reading), testing::Contains(501));
}

}  // namespace
}  // namespace gradcheck
