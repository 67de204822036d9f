// SPDX-License-Identifier: Apache-2.0
#include "verdict/logp/declared.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gradcheck {
namespace {

constexpr double kMostEntropy = 12.5;  // log of 2^18 classes: no vocabulary has more
// One update at a learning rate of 1e-4 moved mean |delta| by .03, k3 by 7e-4 and single tokens by
// .9 (docs/logp.md); a little more is allowed for each.
constexpr double kMeanOfUpdate = 0.05;
constexpr double kK3OfUpdate = 2e-3;  // grows with the square
constexpr double kMaxOfUpdate = 1;

// How far a difference lies outside of what the temperature can make, with its sign.
double excess_of(double flat, double delta, double sharpening) {
  const double least = sharpening * flat;
  const double most = std::min(-flat, sharpening * (flat + kMostEntropy));
  return std::min(0.0, delta - least) + std::max(0.0, delta - std::max(least, most));
}

BandLevel level_of_excess(const LogProbFacts& facts, double sharpening, bool new_is_sharp) {
  DeltaSums sums;
  double k3 = 0;
  for_each_token(facts.shards, [&](const LogProbShard& shard, std::size_t i) {
    const double delta = delta_at(shard, i);
    const double flat = new_is_sharp ? shard.old_values[i] : shard.new_values[i];
    const double excess = excess_of(flat, new_is_sharp ? delta : -delta, sharpening);
    const double up = std::expm1(excess);
    add_token(sums, flat, excess, up);
    k3 += up - excess;
  });
  const auto tokens = static_cast<double>(std::max<std::int64_t>(1, sums.tokens));
  return level_in(facts.band, sums.mean_abs(), sums.largest, k3 / tokens);
}

}  // namespace

bool fits_the_temperature(const LogProbFacts& facts) {
  if (!facts.conditions.temperature) return false;
  const double t = *facts.conditions.temperature;
  const double sharpening = std::max(t, 1 / t) - 1;
  return level_of_excess(facts, sharpening, true) <= BandLevel::note ||
         level_of_excess(facts, sharpening, false) <= BandLevel::note;
}

LogProbBand widened_by_lag(LogProbBand band, std::optional<std::int64_t> lag) {
  if (!lag || *lag == 0) return band;
  const auto updates = static_cast<double>(*lag);
  const double k3 = kK3OfUpdate * updates * updates;
  const double wider = band.number == "k3"        ? k3
                       : band.number == "max_abs" ? kMaxOfUpdate * updates
                                                  : kMeanOfUpdate * updates;
  band.pass += wider;
  band.note += wider;
  band.warning += wider;
  if (band.k3_pass) *band.k3_pass += k3;
  if (band.k3_warning) *band.k3_warning += k3;
  band.source += fmt::format(", {} update{} behind", *lag, *lag == 1 ? "" : "s");
  return band;
}

}  // namespace gradcheck
