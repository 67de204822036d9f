// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/toy_policy.h"
#include "verdict/logp/judge.h"

namespace gradcheck {
namespace {

struct Dump {
  std::size_t rows = 0, tokens = 0;
  int ranks = 1;
  double sd = 0;
  bool coarse = false;  // both sides in bf16
};

// Noise that shrinks where a token is certain, as that of logits does.
LogProbShard noisy(const Dump& dump, int rank, std::mt19937_64& random) {
  std::exponential_distribution<double> surprisal(0.5);
  std::normal_distribution<double> noise(0, dump.sd);
  LogProbShard shard;
  shard.rank = rank;
  shard.offsets = {0};
  for (std::size_t row = 0; row < dump.rows; ++row) {
    for (std::size_t t = 0; t < dump.tokens; ++t) {
      const double old_value = toy::as_f32(-surprisal(random));
      const double changed = old_value + noise(random) * (1 - std::exp(old_value));
      shard.old_values.push_back(dump.coarse ? toy::as_bf16(old_value) : old_value);
      const double new_value = toy::as_f32(std::min(changed, 0.0));
      shard.new_values.push_back(dump.coarse ? toy::as_bf16(new_value) : new_value);
    }
    shard.offsets.push_back(shard.old_values.size());
  }
  return shard;
}

Dump dump_of(std::mt19937_64& random) {
  Dump dump;
  dump.rows = 1 + random() % 40;
  dump.tokens = 4 + random() % 200;
  dump.ranks = 1 + static_cast<int>(random() % 4);
  dump.sd = std::pow(10.0, -5.0 + 3.5 * std::uniform_real_distribution<double>(0, 1)(random));
  dump.coarse = random() % 4 == 0;
  return dump;
}

// Healthy noise of any size, in any layout, accuses nobody; small dumps may be too small to judge.
TEST(HealthyNoise, AccusesNobody) {
  std::mt19937_64 random(11);
  int judged = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const Dump dump = dump_of(random);
    std::vector<LogProbShard> shards;
    for (int rank = 0; rank < dump.ranks; ++rank) shards.push_back(noisy(dump, rank, random));
    const LogProbReading reading = judge_log_probs(shards, {});
    EXPECT_NE(reading.outcome, Outcome::inconsistent)
        << "trial " << trial << ": " << reading.headline;
    for (const Finding& finding : reading.findings) {
      const bool quiet = finding.severity == Severity::note || finding.code == 607;
      EXPECT_TRUE(quiet) << "trial " << trial << ": " << finding.message;
    }
    judged += reading.outcome == Outcome::consistent ? 1 : 0;
  }
  EXPECT_GT(judged, 350);
}

LogProbShard padded_without_mask(double sd) {
  std::mt19937_64 random(5);
  LogProbShard shard = noisy({20, 100, 1, sd, false}, 0, random);
  for (std::size_t row = 0; row < 20; ++row) {
    for (std::size_t t = 10; t < 100; ++t) {
      shard.old_values[row * 100 + t] = shard.new_values[row * 100 + t] = 0;
    }
  }
  return shard;
}

TEST(Padding, WithoutAMaskDoesNotThinOutTheMean) {
  const LogProbShard shard = padded_without_mask(0.4);
  const LogProbReading reading = judge_log_probs({&shard, 1}, {});
  EXPECT_EQ(reading.outcome, Outcome::inconsistent) << reading.headline;
  EXPECT_EQ(reading.counts.compared, 200);
  EXPECT_EQ(reading.regime, Regime::other_engine);
  EXPECT_THAT(reading.notes, testing::Contains(testing::HasSubstr("1800 tokens at the ends")));
}

TEST(Padding, AloneIsNothingToCompare) {
  LogProbShard shard;
  shard.offsets = {0, 8};
  shard.old_values = shard.new_values = std::vector<double>(8, 0.0);
  const LogProbReading reading = judge_log_probs({&shard, 1}, {});
  EXPECT_EQ(reading.outcome, Outcome::inconclusive);
}

TEST(Padding, AFewCertainTokensAreNone) {
  LogProbShard shard;
  shard.offsets = {0, 6};
  shard.old_values = shard.new_values = {0, 0, -1, -2, 0, 0};
  EXPECT_EQ(judge_log_probs({&shard, 1}, {}).counts.compared, 6);
}

}  // namespace
}  // namespace gradcheck
