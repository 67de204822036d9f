// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <vector>

#include "verdict/logp/sums.h"

namespace gradcheck {

// Upper ends of the ranges of old log-probs; the last range ends at (and reaches beyond) 0. The
// last one holds tokens of more than 95 %.
inline constexpr std::array<double, 7> kLogProbEdges = {-8, -4, -2, -1, -0.25, -0.05, 0};

std::vector<DeltaSums> sums_by_log_prob(Shards shards);

// Position is the count of tokens since the row's first one that counts; ranges of equal length,
// at most kLogProbPositions, over the longest row.
struct PositionSums {
  std::size_t width = 1;  // positions in a range
  std::vector<DeltaSums> ranges;
};
PositionSums sums_by_position(Shards shards);

struct RankSums {
  int rank = 0;
  DeltaSums sums;
};
std::vector<RankSums> sums_by_rank(const Sums& sums);  // ascending

LogProbGroup group_of(std::string label, const DeltaSums& sums);
std::vector<LogProbGroup> rank_groups(const std::vector<RankSums>& ranks);
// By the number that rows carry, over all ranks, ascending; empty where none does.
std::vector<LogProbGroup> micro_batch_groups(const Sums& sums);
std::vector<LogProbGroup> log_prob_groups(const std::vector<DeltaSums>& bins);
std::vector<LogProbGroup> position_groups(const PositionSums& positions);

// The largest |delta|, ties in the order of the input; tokens without a difference are no
// candidates.
std::vector<LogProbToken> worst_tokens(Shards shards);
std::vector<LogProbRow> worst_rows(const Sums& sums);

}  // namespace gradcheck
