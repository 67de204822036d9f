// SPDX-License-Identifier: Apache-2.0
#include "verdict/logp/shape.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gradcheck {
namespace {

void add_large(Shape& shape, const LogProbShard& shard, std::size_t i) {
  ++shape.large;
  shape.large_upwards += delta_at(shard, i) > 0 ? 1 : 0;
  const double mass = std::exp(shard.old_values[i]) + std::exp(shard.new_values[i]);
  shape.large_over_one += mass > 1.01 ? 1 : 0;
}

// Sums for a straight line of y over x.
struct LineSums {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  void add(double at, double value) {
    ++n;
    x += at, y += value;
    xx += at * at, xy += at * value, yy += value * value;
  }
};

Trend with_intercept(const LineSums& s) {
  const double xx = s.xx - s.x * s.x / s.n;
  const double yy = s.yy - s.y * s.y / s.n;
  const double xy = s.xy - s.x * s.y / s.n;
  if (!(xx > 0 && yy > 0)) return {};
  return {xy / xx, xy * xy / (xx * yy)};
}

Trend through_origin(const LineSums& s) {
  if (!(s.xx > 0 && s.yy > 0)) return {};
  return {s.xy / s.xx, s.xy * s.xy / (s.xx * s.yy)};
}

}  // namespace

Shape shape_of(const LogProbFacts& facts) {
  Shape shape;
  shape.lowest = std::numeric_limits<double>::infinity();
  shape.highest = -shape.lowest;
  const double bound = std::max(10 * facts.statistics.p50, 0.02);
  for (const RowSums& row : facts.sums.rows) {
    const std::int64_t before = shape.large;
    for_each_compared(*row.shard, row.row, [&](std::size_t i) {
      const double delta = delta_at(*row.shard, i);
      shape.above += delta > 1e-6 ? 1 : 0;
      shape.below += delta < -1e-6 ? 1 : 0;
      shape.lowest = std::min(shape.lowest, delta);
      shape.highest = std::max(shape.highest, delta);
      if (std::fabs(delta) > bound) add_large(shape, *row.shard, i);
    });
    shape.large_rows += shape.large > before ? 1 : 0;
  }
  return shape;
}

Trend trend_over_old(const LogProbFacts& facts) {
  LineSums sums;
  for_each_token(facts.shards, [&](const LogProbShard& shard, std::size_t i) {
    sums.add(shard.old_values[i], delta_at(shard, i));
  });
  return with_intercept(sums);
}

Trend trend_over_entropy(const LogProbFacts& facts) {
  LineSums sums;
  for (const LogProbShard* shard : facts.shards) {
    if (shard->entropy.empty()) return {};
  }
  for_each_token(facts.shards, [&](const LogProbShard& shard, std::size_t i) {
    if (!std::isfinite(shard.entropy[i])) return;
    sums.add(shard.old_values[i] + shard.entropy[i], delta_at(shard, i));
  });
  return through_origin(sums);
}

Ends ends_of(const LogProbFacts& facts) {
  Ends ends;
  for (std::size_t bin = 0; bin < facts.bins.size(); ++bin) {
    if (kLogProbEdges[bin] <= -4) add(ends.rare, facts.bins[bin]);
    if (kLogProbEdges[bin] > -1) add(ends.likely, facts.bins[bin]);
    if (kLogProbEdges[bin] == 0) add(ends.sure, facts.bins[bin]);
  }
  return ends;
}

}  // namespace gradcheck
