// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "verdict/logp/bands.h"
#include "verdict/logp/grid.h"
#include "verdict/logp/groups.h"
#include "verdict/logp/sums.h"

namespace gradcheck {

// Everything that was measured, before anything is concluded from it. Points into the shards.
struct LogProbFacts {
  std::vector<const LogProbShard*> shards;
  LogProbConditions conditions;
  LogProbCounts counts;
  LogProbStatistics statistics;
  Sums sums;
  std::vector<RankSums> ranks;
  std::vector<DeltaSums> bins;
  PositionSums positions;
  SideGrid old_grid, new_grid;
  double rounding = 0;  // mean |delta| that storing on the coarser grid makes; 0: no grid
  ChosenRegime regime;
  DType dtype = DType::bf16;
  LogProbBand band;

  bool bitwise() const { return counts.compared > 0 && counts.identical == counts.compared; }
  bool one_side_on_grid() const {
    return (old_grid.grid == Grid::none) != (new_grid.grid == Grid::none);
  }
};

// Where some of the tokens stand in the band of all.
BandLevel level_of(const LogProbFacts& facts, const DeltaSums& sums);

LogProbFacts measure(std::vector<const LogProbShard*> shards, const LogProbConditions& conditions);

// What one test of docs/logp.md saw: a line of the reading and, where something is wrong, a
// finding and the cause it speaks for.
struct Sign {
  LogProbSignature signature;
  int code = 0;  // 0: no finding of its own
  Severity severity = Severity::error;
  std::vector<int> ranks;  // involved
  std::uint64_t count = 0;
  std::optional<CauseClaim> claim;
  double explains = 0;  // share of Σ|delta| that the claim accounts for
};

}  // namespace gradcheck
