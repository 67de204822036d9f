// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "verdict/logp/tokens.h"

namespace gradcheck {

// Sums over compared tokens, to be added up over rows, ranks, ranges; divided at the very end.
struct DeltaSums {
  std::int64_t tokens = 0;
  std::int64_t identical = 0;
  double delta = 0;
  double absolute = 0;
  double square = 0;
  double ratio = 0;  // of ratio − 1
  double old_values = 0;
  double largest = 0;  // |delta|

  double mean() const { return tokens > 0 ? delta / static_cast<double>(tokens) : 0; }
  double mean_abs() const { return tokens > 0 ? absolute / static_cast<double>(tokens) : 0; }
  double mean_ratio() const { return tokens > 0 ? ratio / static_cast<double>(tokens) : 0; }
};

inline void add(DeltaSums& to, const DeltaSums& other) {
  to.tokens += other.tokens;
  to.identical += other.identical;
  to.delta += other.delta;
  to.absolute += other.absolute;
  to.square += other.square;
  to.ratio += other.ratio;
  to.old_values += other.old_values;
  to.largest = std::max(to.largest, other.largest);
}

inline void add_token(DeltaSums& to, double old_value, double delta, double ratio_minus_1) {
  const double absolute = std::fabs(delta);
  ++to.tokens;
  to.identical += delta == 0 ? 1 : 0;
  to.delta += delta;
  to.absolute += absolute;
  to.square += delta * delta;
  to.ratio += ratio_minus_1;
  to.old_values += old_value;
  to.largest = std::max(to.largest, absolute);
}

// Of one row with at least one compared token.
struct RowSums {
  const LogProbShard* shard = nullptr;
  std::size_t row = 0;
  DeltaSums sums;
};

// Sums that no row needs, over all compared tokens.
struct TokenSums {
  double cube = 0, fourth = 0;  // of delta
  double k3 = 0, k3_reversed = 0, js = 0;
  double ratio_square = 0;  // of ratio²
  double tme = 0;           // of e^|delta|
  double outside[4] = {};   // counts beyond 1, 5, 10, 20 %
  double outside_clip = 0;
  double probability = 0, probability_square = 0, probability_max = 0;  // |e^new − e^old|
  double p = 0, q = 0, pp = 0, qq = 0, pq = 0;                          // e^old, e^new
};

struct Sums {
  DeltaSums all;
  TokenSums tokens;
  std::vector<RowSums> rows;      // in the order of the shards
  std::vector<float> magnitudes;  // |delta| of every compared token
};

// One pass over everything. `clip_epsilon` is the run's own clip range.
Sums sum_up(Shards shards, double clip_epsilon);

}  // namespace gradcheck
