// SPDX-License-Identifier: Apache-2.0
#include "verdict/logp/sums.h"

#include <cmath>

namespace gradcheck {
namespace {

constexpr double kOutside[4] = {0.01, 0.05, 0.10, 0.20};

// k3 towards the mixture from each side: with m the mixture's log-prob, m − old = log1p(up / 2)
// and m − new = log1p(down / 2), where up = ratio − 1 and down = 1/ratio − 1.
double js_of(double up, double down) {
  return 0.5 * ((up / 2 - std::log1p(up / 2)) + (down / 2 - std::log1p(down / 2)));
}

void add_probabilities(TokenSums& sums, double old_value, double new_value) {
  const double p = std::exp(old_value);
  const double q = std::exp(new_value);
  const double difference = std::fabs(q - p);
  sums.probability += difference;
  sums.probability_square += difference * difference;
  sums.probability_max = std::max(sums.probability_max, difference);
  sums.p += p;
  sums.q += q;
  sums.pp += p * p;
  sums.qq += q * q;
  sums.pq += p * q;
}

void add_ratio(TokenSums& sums, double delta, double up, double clip_epsilon) {
  const double down = std::expm1(-delta);
  sums.k3 += up - delta;
  sums.k3_reversed += down + delta;
  sums.js += js_of(up, down);
  sums.ratio_square += (up + 1) * (up + 1);
  sums.tme += 1 + std::max(up, down);
  for (int i = 0; i < 4; ++i) sums.outside[i] += std::fabs(up) > kOutside[i] ? 1 : 0;
  sums.outside_clip += std::fabs(up) > clip_epsilon ? 1 : 0;
}

void add_one(Sums& sums, DeltaSums& row, double old_value, double new_value, double clip_epsilon) {
  const double delta = new_value - old_value;
  const double up = delta == 0 ? 0 : std::expm1(delta);
  add_token(row, old_value, delta, up);
  add_probabilities(sums.tokens, old_value, new_value);
  sums.magnitudes.push_back(static_cast<float>(std::fabs(delta)));
  if (delta == 0) {
    sums.tokens.ratio_square += 1;
    sums.tokens.tme += 1;
    return;
  }
  add_ratio(sums.tokens, delta, up, clip_epsilon);
  sums.tokens.cube += delta * delta * delta;
  sums.tokens.fourth += delta * delta * delta * delta;
}

std::size_t tokens_in(Shards shards) {
  std::size_t tokens = 0;
  for (const LogProbShard* shard : shards) tokens += shard->old_values.size();
  return tokens;
}

}  // namespace

Sums sum_up(Shards shards, double clip_epsilon) {
  Sums sums;
  sums.magnitudes.reserve(tokens_in(shards));
  for_each_row(shards, [&](const LogProbShard& shard, std::size_t row) {
    RowSums of_row{&shard, row, {}};
    for_each_compared(shard, row, [&](std::size_t i) {
      add_one(sums, of_row.sums, shard.old_values[i], shard.new_values[i], clip_epsilon);
    });
    if (of_row.sums.tokens == 0) return;
    add(sums.all, of_row.sums);
    sums.rows.push_back(of_row);
  });
  return sums;
}

}  // namespace gradcheck
