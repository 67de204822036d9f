// SPDX-License-Identifier: Apache-2.0
#include "verdict/logp/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace gradcheck {
namespace {

constexpr double kPositive = 1e-6;  // rounding may lift a certain token this far above 0

struct Quantiles {
  double p5 = 0, p50 = 0, p95 = 0;
};

void count_side(double value, bool inside, std::int64_t& nonfinite, LogProbCounts& counts,
                std::int64_t& positive, std::int64_t& zero) {
  if (!std::isfinite(value)) ++(inside ? nonfinite : counts.nonfinite_masked_out);
  if (!inside) return;
  positive += value > kPositive && std::isfinite(value) ? 1 : 0;
  zero += value == 0 ? 1 : 0;
}

void count_token(const LogProbShard& shard, std::size_t i, LogProbCounts& counted) {
  const bool inside = counts(shard, i);
  ++(inside ? counted.tokens : counted.masked_out);
  count_side(shard.old_values[i], inside, counted.nonfinite_old, counted, counted.positive_old,
             counted.zero_old);
  count_side(shard.new_values[i], inside, counted.nonfinite_new, counted, counted.positive_new,
             counted.zero_new);
  if (!is_compared(shard, i)) return;
  ++counted.compared;
  counted.identical += shard.old_values[i] == shard.new_values[i] ? 1 : 0;
}

// |delta| at 50, 95 and 99 % and the share that the largest 1 % hold; each partition narrows the
// range that the next one has to look at.
void take_magnitudes(std::vector<float>& magnitudes, double total, LogProbStatistics& result) {
  const std::size_t n = magnitudes.size();
  if (n == 0) return;
  const auto at = [&](double q) {
    const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(n)));
    return magnitudes.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1) - 1);
  };
  std::nth_element(magnitudes.begin(), at(0.99), magnitudes.end());
  result.p99 = *at(0.99);
  std::nth_element(magnitudes.begin(), at(0.95), at(0.99) + 1);
  result.p95 = *at(0.95);
  std::nth_element(magnitudes.begin(), at(0.50), at(0.95) + 1);
  result.p50 = *at(0.50);
  double top = 0;
  for (auto value = at(0.99) + 1; value < magnitudes.end(); ++value) top += *value;
  result.top_share = total > 0 ? top / total : 0;
}

void take_moments(const Sums& sums, LogProbStatistics& result) {
  const auto n = static_cast<double>(sums.all.tokens);
  const double mean = sums.all.delta / n;
  const double second = sums.all.square / n;
  const double variance = std::max(0.0, second - mean * mean);
  const double fourth = sums.tokens.fourth / n - 4 * mean * sums.tokens.cube / n +
                        6 * mean * mean * second - 3 * std::pow(mean, 4);
  result.mean = mean;
  result.mean_abs = sums.all.absolute / n;
  result.sd = std::sqrt(variance);
  result.kurtosis = variance > 0 ? fourth / (variance * variance) : 0;
  result.max_abs = sums.all.largest;
  result.surprisal = -sums.all.old_values / n;
}

void take_divergences(const Sums& sums, LogProbStatistics& result) {
  const auto n = static_cast<double>(sums.all.tokens);
  const TokenSums& t = sums.tokens;
  result.k1 = -result.mean;
  result.k2 = sums.all.square / n / 2;
  result.k3 = t.k3 / n;
  result.k3_reversed = t.k3_reversed / n;
  result.js = t.js / n;
  result.chi2 = t.ratio_square / n - 1;
  const double ratio = sums.all.ratio + n;
  result.ess = t.ratio_square > 0 ? ratio * ratio / (n * t.ratio_square) : 0;
  result.tme = t.tme / n;
}

std::optional<double> pearson_of(const TokenSums& t, double n) {
  const double p = t.pp / n - t.p * t.p / n / n;
  const double q = t.qq / n - t.q * t.q / n / n;
  const double both = t.pq / n - t.p * t.q / n / n;
  if (!(p > 0 && q > 0)) return std::nullopt;
  return std::clamp(both / std::sqrt(p * q), -1.0, 1.0);
}

void take_shares(const Sums& sums, const LogProbConditions& conditions, LogProbStatistics& result) {
  const auto n = static_cast<double>(sums.all.tokens);
  const TokenSums& t = sums.tokens;
  result.outside_1 = t.outside[0] / n;
  result.outside_5 = t.outside[1] / n;
  result.outside_10 = t.outside[2] / n;
  result.outside_20 = t.outside[3] / n;
  if (conditions.clip_epsilon) result.outside_clip = t.outside_clip / n;
  result.probability_mean = t.probability / n;
  result.probability_max = t.probability_max;
  result.probability_sd = std::sqrt(
      std::max(0.0, t.probability_square / n - result.probability_mean * result.probability_mean));
  result.pearson = pearson_of(t, n);
}

Quantiles quantiles_of(std::vector<double> values) {
  return {quantile(values, 0.05), quantile(values, 0.5), quantile(values, 0.95)};
}

void take_sequences(const Sums& sums, LogProbStatistics& result) {
  std::vector<double> geometric;
  std::vector<double> product;
  double squares = 0;
  for (const RowSums& row : sums.rows) {
    geometric.push_back(std::exp(row.sums.mean()));
    product.push_back(std::exp(row.sums.delta));
    squares += std::expm1(2 * row.sums.delta);
    result.sequence_mean_abs += row.sums.mean_abs();
  }
  const auto n = static_cast<double>(sums.rows.size());
  result.sequence_mean_abs /= n;
  result.chi2_sequence = squares / n;
  const Quantiles g = quantiles_of(std::move(geometric));
  const Quantiles p = quantiles_of(std::move(product));
  result.geometric_p5 = g.p5, result.geometric_p50 = g.p50, result.geometric_p95 = g.p95;
  result.product_p5 = p.p5, result.product_p50 = p.p50, result.product_p95 = p.p95;
}

void take_bias(const Sums& sums, LogProbStatistics& result) {
  std::vector<ClusterSum> clusters;
  for (const RowSums& row : sums.rows) clusters.push_back({row.sums.ratio, 0, row.sums.tokens});
  // Σ (ratio − 1)² is known for all tokens together only.
  const auto n = static_cast<double>(sums.all.tokens);
  if (!clusters.empty()) {
    clusters.front().square = sums.tokens.ratio_square - 2 * sums.all.ratio - n;
  }
  const ClusteredMean bias = clustered_mean(clusters);
  result.mean_ratio = bias.mean;
  result.mean_ratio_se = bias.error;
  result.z = bias.z();
  result.detectable_bias = 4 * bias.error;
}

// Rows whose sum of `value(shard, index)` over finite values is wanted.
template <class Value>
std::vector<ClusterSum> clusters_of(Shards shards, Value&& value) {
  std::vector<ClusterSum> clusters;
  for_each_row(shards, [&](const LogProbShard& shard, std::size_t row) {
    ClusterSum cluster;
    for_each_compared(shard, row, [&](std::size_t i) {
      const double x = value(shard, i);
      if (!std::isfinite(x)) return;
      cluster.sum += x;
      cluster.square += x * x;
      ++cluster.tokens;
    });
    if (cluster.tokens > 0) clusters.push_back(cluster);
  });
  return clusters;
}

void take_entropy(Shards shards, LogProbStatistics& result) {
  const auto excess = clustered_mean(clusters_of(shards, [](const LogProbShard& s, std::size_t i) {
    return s.entropy.empty() ? std::nan("") : -s.new_values[i] - s.entropy[i];
  }));
  if (excess.clusters == 0) return;
  result.entropy_excess = excess.mean;
  result.entropy_excess_z = excess.z();
}

void take_repeat(Shards shards, LogProbStatistics& result) {
  const auto noise = clustered_mean(clusters_of(shards, [](const LogProbShard& s, std::size_t i) {
    return s.new_repeat.empty() ? std::nan("") : std::fabs(s.new_repeat[i] - s.new_values[i]);
  }));
  if (noise.clusters > 0) result.repeat_mean_abs = noise.mean;
}

}  // namespace

double quantile(std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  const auto n = static_cast<double>(values.size());
  const auto rank = static_cast<std::size_t>(std::max(1.0, std::ceil(q * n))) - 1;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

ClusteredMean clustered_mean(std::span<const ClusterSum> clusters) {
  ClusteredMean result;
  double sum = 0, square = 0, n = 0;
  for (const ClusterSum& cluster : clusters) {
    sum += cluster.sum;
    square += cluster.square;
    n += static_cast<double>(cluster.tokens);
  }
  if (n == 0) return result;
  result.clusters = static_cast<std::int64_t>(clusters.size());
  result.mean = sum / n;
  double between = 0;
  for (const ClusterSum& cluster : clusters) {
    between += std::pow(cluster.sum - static_cast<double>(cluster.tokens) * result.mean, 2);
  }
  const auto g = static_cast<double>(clusters.size());
  const double clustered = g > 1 ? std::sqrt(between * g / (g - 1)) / n : 0;
  const double within = std::max(0.0, square / n - result.mean * result.mean);
  result.error = std::max(clustered, n > 1 ? std::sqrt(within / (n - 1)) : 0);
  return result;
}

double sigmas_needed(std::int64_t clusters) {
  if (clusters < 4) return std::numeric_limits<double>::infinity();
  return 4 * (1 + 12 / static_cast<double>(clusters));
}

LogProbCounts count_values(Shards shards) {
  LogProbCounts result;
  std::set<int> ranks;
  for (const LogProbShard* shard : shards) ranks.insert(shard->rank);
  result.ranks = static_cast<std::int64_t>(ranks.size());
  for_each_row(shards, [&](const LogProbShard& shard, std::size_t row) {
    const std::int64_t before = result.tokens;
    for (std::size_t i = shard.offsets[row]; i < shard.offsets[row + 1]; ++i) {
      count_token(shard, i, result);
    }
    result.sequences += result.tokens > before ? 1 : 0;
  });
  return result;
}

LogProbStatistics statistics_of(Shards shards, Sums& sums, const LogProbConditions& conditions) {
  LogProbStatistics result;
  if (sums.all.tokens == 0) return result;
  take_moments(sums, result);
  take_magnitudes(sums.magnitudes, sums.all.absolute, result);
  take_divergences(sums, result);
  take_shares(sums, conditions, result);
  take_sequences(sums, result);
  take_bias(sums, result);
  take_entropy(shards, result);
  take_repeat(shards, result);
  return result;
}

}  // namespace gradcheck
