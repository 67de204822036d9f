// SPDX-License-Identifier: Apache-2.0
#include "verdict/logp/facts.h"

#include <algorithm>

#include "verdict/logp/declared.h"
#include "verdict/logp/statistics.h"

namespace gradcheck {
namespace {

constexpr double kDefaultClip = 0.2;

void measure_grids(LogProbFacts& facts) {
  facts.old_grid = grid_of(facts.shards, Side::old_side);
  facts.new_grid = grid_of(facts.shards, Side::new_side);
  facts.rounding = std::max(mean_rounding(facts.shards, Side::old_side, facts.old_grid.grid),
                            mean_rounding(facts.shards, Side::new_side, facts.new_grid.grid));
}

}  // namespace

BandLevel level_of(const LogProbFacts& facts, const DeltaSums& sums) {
  const double k3 = (sums.ratio - sums.delta) / static_cast<double>(sums.tokens);
  return level_in(facts.band, sums.mean_abs(), sums.largest, k3);
}

LogProbFacts measure(std::vector<const LogProbShard*> shards, const LogProbConditions& conditions) {
  LogProbFacts facts;
  facts.shards = std::move(shards);
  facts.conditions = conditions;
  facts.counts = count_values(facts.shards);
  facts.sums = sum_up(facts.shards, conditions.clip_epsilon.value_or(kDefaultClip));
  facts.statistics = statistics_of(facts.shards, facts.sums, conditions);
  facts.ranks = sums_by_rank(facts.sums);
  facts.bins = sums_by_log_prob(facts.shards);
  facts.positions = sums_by_position(facts.shards);
  measure_grids(facts);
  facts.regime = choose_regime(conditions, facts.counts, facts.statistics, facts.rounding);
  facts.dtype = conditions.dtype.value_or(DType::bf16);
  facts.band =
      band_in_force(band_for(facts.regime.regime, facts.dtype, conditions.mixture_of_experts),
                    facts.regime.regime, facts.statistics.repeat_mean_abs);
  facts.band = widened_by_lag(std::move(facts.band), conditions.lag);
  return facts;
}

}  // namespace gradcheck
