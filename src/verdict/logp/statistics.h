// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "verdict/logp/sums.h"

namespace gradcheck {

// Value at share `q` (0 to 1) of the sorted values, by nearest rank; 0 if there are none. Reorders.
double quantile(std::vector<double>& values, double q);

LogProbCounts count_values(Shards shards);

// Consumes the magnitudes of `sums` (reorders them).
LogProbStatistics statistics_of(Shards shards, Sums& sums, const LogProbConditions& conditions);

// Mean over tokens of a quantity of which each row knows its sum, with its standard error: by
// clusters (sequences) where there are two, and never below the one of independent tokens.
struct ClusteredMean {
  double mean = 0;
  double error = 0;
  std::int64_t clusters = 0;
  std::optional<double> z() const { return error > 0 ? std::optional(mean / error) : std::nullopt; }
};

struct ClusterSum {
  double sum = 0;
  double square = 0;  // of single tokens
  std::int64_t tokens = 0;
};

ClusteredMean clustered_mean(std::span<const ClusterSum> clusters);

// |z| beyond which a mean is told from 0: 4 with many sequences, more with few, whose standard
// error is itself uncertain. Infinite below four.
double sigmas_needed(std::int64_t clusters);

}  // namespace gradcheck
