// SPDX-License-Identifier: Apache-2.0
#include "verdict/logp/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace gradcheck {
namespace {

LogProbShard shard_of(std::vector<double> old_values, std::vector<double> new_values,
                      std::vector<std::size_t> offsets) {
  LogProbShard shard;
  shard.old_values = std::move(old_values);
  shard.new_values = std::move(new_values);
  shard.offsets = std::move(offsets);
  return shard;
}

LogProbStatistics statistics(const std::vector<LogProbShard>& shards,
                             const LogProbConditions& conditions = {}) {
  std::vector<const LogProbShard*> pointers;
  for (const LogProbShard& shard : shards) pointers.push_back(&shard);
  Sums sums = sum_up(pointers, conditions.clip_epsilon.value_or(0.2));
  return statistics_of(pointers, sums, conditions);
}

// Two sequences of two tokens, worked out by hand: Δ = 0.1, −0.2, 0.3, 0.
const std::vector<LogProbShard> kByHand = {
    shard_of({-1, -2, -3, -0.5}, {-0.9, -2.2, -2.7, -0.5}, {0, 2, 4})};

TEST(Statistics, AreTheirFormulas) {
  const LogProbStatistics s = statistics(kByHand);
  EXPECT_NEAR(s.mean, 0.05, 1e-12);
  EXPECT_NEAR(s.mean_abs, 0.15, 1e-12);
  EXPECT_NEAR(s.sd, std::sqrt(0.035 - 0.0025), 1e-12);
  EXPECT_NEAR(s.max_abs, 0.3, 1e-12);
  const double ratios = std::exp(0.1) + std::exp(-0.2) + std::exp(0.3) + 1;
  EXPECT_NEAR(s.mean_ratio, ratios / 4 - 1, 1e-12);
  EXPECT_NEAR(s.k1, -0.05, 1e-12);
  EXPECT_NEAR(s.k2, 0.0175, 1e-12);
  EXPECT_NEAR(s.k3, ratios / 4 - 1 - 0.05, 1e-12);
  const double inverse = std::exp(-0.1) + std::exp(0.2) + std::exp(-0.3) + 1;
  EXPECT_NEAR(s.k3_reversed, inverse / 4 - 1 + 0.05, 1e-12);
  const double squares = std::exp(0.2) + std::exp(-0.4) + std::exp(0.6) + 1;
  EXPECT_NEAR(s.chi2, squares / 4 - 1, 1e-12);
  EXPECT_NEAR(s.ess, ratios * ratios / (4 * squares), 1e-12);
  EXPECT_NEAR(s.tme, (std::exp(0.1) + std::exp(0.2) + std::exp(0.3) + 1) / 4, 1e-12);
  EXPECT_NEAR(s.surprisal, 6.5 / 4, 1e-12);
}

TEST(Statistics, OfSequencesAndShares) {
  LogProbConditions conditions;
  conditions.clip_epsilon = 0.15;
  const LogProbStatistics s = statistics(kByHand, conditions);
  EXPECT_EQ(s.outside_1, 0.75);
  EXPECT_EQ(s.outside_10, 0.75);
  EXPECT_EQ(s.outside_20, 0.25);
  EXPECT_EQ(s.outside_clip, 0.5);
  EXPECT_NEAR(s.geometric_p5, std::exp(-0.05), 1e-12);
  EXPECT_NEAR(s.geometric_p95, std::exp(0.15), 1e-12);
  EXPECT_NEAR(s.product_p95, std::exp(0.3), 1e-12);
  EXPECT_NEAR(s.sequence_mean_abs, 0.15, 1e-12);
  EXPECT_NEAR(s.chi2_sequence, (std::exp(-0.2) + std::exp(0.6)) / 2 - 1, 1e-12);
}

TEST(Statistics, OfProbabilitiesAreVerls) {
  const LogProbStatistics s = statistics(kByHand);
  double sum = 0, most = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const double d =
        std::fabs(std::exp(kByHand[0].new_values[i]) - std::exp(kByHand[0].old_values[i]));
    sum += d;
    most = std::max(most, d);
  }
  EXPECT_NEAR(s.probability_mean, sum / 4, 1e-12);
  EXPECT_NEAR(s.probability_max, most, 1e-12);
  ASSERT_TRUE(s.pearson);
  EXPECT_GT(*s.pearson, 0.9);
}

TEST(Statistics, JensenShannonIsThatOfTheMixture) {
  const LogProbStatistics s = statistics(kByHand);
  double js = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const double o = kByHand[0].old_values[i], n = kByHand[0].new_values[i];
    const double m = std::log((std::exp(o) + std::exp(n)) / 2);
    js += (std::exp(m - o) - 1 - (m - o) + std::exp(m - n) - 1 - (m - n)) / 2;
  }
  EXPECT_NEAR(s.js, js / 4, 1e-12);
}

TEST(Statistics, TinyDifferencesKeepTheirK3) {
  // exp(x) − 1 − x in fp32 says 3.4 times too much here.
  const LogProbStatistics s = statistics({shard_of({-1}, {-1 + 1e-6}, {0, 1})});
  EXPECT_NEAR(s.k3 / 5e-13, 1, 1e-3);
}

TEST(Statistics, SumsOverRanksBeforeDividing) {
  // The mean of ranks' means would be 0.5.
  LogProbShard small = shard_of({-2}, {-1}, {0, 1});
  LogProbShard large = shard_of({-1, -1, -1}, {-1, -1, -1}, {0, 3});
  large.rank = 1;
  EXPECT_NEAR(statistics({small, large}).mean_abs, 0.25, 1e-12);
}

TEST(Statistics, TheErrorIsClusteredBySequence) {
  // All tokens of a sequence move together: ten sequences say as much as ten tokens.
  LogProbShard shard;
  shard.offsets = {0};
  for (int row = 0; row < 10; ++row) {
    for (int t = 0; t < 100; ++t) {
      shard.old_values.push_back(-1);
      shard.new_values.push_back(-1 + (row % 2 == 0 ? 0.1 : -0.1));
    }
    shard.offsets.push_back(shard.old_values.size());
  }
  const LogProbStatistics s = statistics({shard});
  EXPECT_NEAR(s.mean_ratio_se, 0.1 / 3, 0.002);
  EXPECT_EQ(s.detectable_bias, 4 * s.mean_ratio_se);
}

TEST(Statistics, OneSequenceHasTheErrorOfItsTokens) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(0, 0.1);
  LogProbShard shard;
  for (int i = 0; i < 10000; ++i) {
    shard.old_values.push_back(-3);
    shard.new_values.push_back(-3 + noise(random));
  }
  shard.offsets = {0, 10000};
  EXPECT_NEAR(statistics({shard}).mean_ratio_se, 1e-3, 1e-4);
}

TEST(Statistics, QuantilesAreByNearestRank) {
  LogProbShard shard;
  for (int i = 1; i <= 100; ++i) {
    shard.old_values.push_back(-200);
    shard.new_values.push_back(-200 + i);
  }
  shard.offsets = {0, 100};
  const LogProbStatistics s = statistics({shard});
  EXPECT_EQ(s.p50, 50);
  EXPECT_EQ(s.p95, 95);
  EXPECT_EQ(s.p99, 99);
  EXPECT_NEAR(s.top_share, 100 / 5050.0, 1e-9);
}

TEST(Statistics, FewSequencesNeedMoreSigmas) {
  EXPECT_TRUE(std::isinf(sigmas_needed(3)));
  EXPECT_GT(sigmas_needed(8), 8);
  EXPECT_LT(sigmas_needed(1000), 4.1);
}

TEST(Counts, AreTakenBeforeAnythingIsMasked) {
  LogProbShard shard = shard_of({0, NAN, -1, 0, -INFINITY, -2}, {0, -1, 0.5, -1, -1, -2}, {0, 6});
  shard.mask = {1, 1, 1, 1, 0, 0};
  const LogProbShard* pointer = &shard;
  const LogProbCounts counts = count_values({&pointer, 1});
  EXPECT_EQ(counts.tokens, 4);
  EXPECT_EQ(counts.masked_out, 2);
  EXPECT_EQ(counts.compared, 3);
  EXPECT_EQ(counts.identical, 1);
  EXPECT_EQ(counts.nonfinite_old, 1);
  EXPECT_EQ(counts.nonfinite_masked_out, 1);
  EXPECT_EQ(counts.positive_new, 1);
  EXPECT_EQ(counts.zero_old, 2);
  EXPECT_EQ(counts.zero_new, 1);
}

}  // namespace
}  // namespace gradcheck
