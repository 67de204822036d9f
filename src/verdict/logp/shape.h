// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "verdict/logp/facts.h"

namespace gradcheck {

// How the differences lie: their signs, their trend over the log-prob, where in rows they stand.
struct Shape {
  std::int64_t above = 0, below = 0;  // tokens with delta beyond ±1e-6
  double lowest = 0, highest = 0;
  std::int64_t large = 0;           // |delta| above ten medians and 0.02
  std::int64_t large_upwards = 0;   // of these with delta above 0
  std::int64_t large_over_one = 0;  // of these with e^old + e^new above 1
  std::int64_t large_rows = 0;      // rows that hold one
};
Shape shape_of(const LogProbFacts& facts);

// Straight line of delta over a predictor; r2 is the share of delta's variance that it takes.
struct Trend {
  double slope = 0;
  double r2 = 0;
};
Trend trend_over_old(const LogProbFacts& facts);
// Over old + entropy, through the origin: to first order delta = (1/T − 1)(old + entropy) when new
// is old at temperature T. Needs entropy on every judged shard; r2 0 without.
Trend trend_over_entropy(const LogProbFacts& facts);

// Mean delta and mean |delta| of rare (old below −4) and of likely (old above −1) tokens.
struct Ends {
  DeltaSums rare, likely, sure;  // sure: old above −0.05
};
Ends ends_of(const LogProbFacts& facts);

// |delta| in the last quarter of rows over that in the first; rows of at least eight tokens.
struct Profile {
  double early = 0, late = 0;  // means
  std::int64_t rows = 0;
  double ratio() const { return early > 0 ? late / early : 1; }
};
// Of the rows for which `wanted` holds.
template <class Wanted>
Profile profile_of(const LogProbFacts& facts, Wanted&& wanted);

bool is_one_sided(const LogProbFacts& facts);  // nearly all delta have one sign
bool is_biased(const LogProbFacts& facts);     // the mean ratio is not 1

template <class Wanted>
Profile profile_of(const LogProbFacts& facts, Wanted&& wanted) {
  DeltaSums early, late;
  Profile profile;
  for (const RowSums& row : facts.sums.rows) {
    if (row.sums.tokens < 8 || !wanted(row)) continue;
    ++profile.rows;
    std::int64_t at = 0;
    for_each_compared(*row.shard, row.row, [&](std::size_t i) {
      const double delta = delta_at(*row.shard, i);
      if (4 * at < row.sums.tokens) add_token(early, 0, delta, 0);
      if (4 * (at + 1) > 3 * row.sums.tokens) add_token(late, 0, delta, 0);
      ++at;
    });
  }
  profile.early = early.mean_abs();
  profile.late = late.mean_abs();
  return profile;
}

}  // namespace gradcheck
