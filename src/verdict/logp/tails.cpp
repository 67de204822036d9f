// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "verdict/logp/shape.h"
#include "verdict/logp/signs.h"

namespace gradcheck {
namespace {

constexpr double kTopShare = 0.25;  // of Σ|delta| in the largest 1 %; a normal one has 0.03
constexpr double kHeavy = 20;       // kurtosis

Sign tail_sign(const LogProbFacts& facts, const Shape& shape) {
  const LogProbStatistics& s = facts.statistics;
  Sign sign;
  sign.explains = std::max(s.top_share, 0.5);
  sign.signature = {
      "tail", Confidence::likely, false,
      fmt::format("the largest 1 % of the tokens hold {} of all |Δ| (kurtosis {}), "
                  "half of them differ by less than {}",
                  percent_text(s.top_share), number_text(s.kurtosis), number_text(s.p50))};
  sign.claim = claim_of(
      Cause::expert_routing, Confidence::likely,
      {sign.signature.text, fmt::format("{} tokens in {} rows stand out, {} "
                                        "upwards",
                                        shape.large, shape.large_rows, shape.large_upwards)},
      {"fused kernels that round on the way make such spikes too"});
  sign.signature.declared =
      facts.conditions.mixture_of_experts && level_in(facts.band, s) <= BandLevel::note;
  return sign;
}

}  // namespace

std::vector<Sign> see_tails(const LogProbFacts& facts) {
  const LogProbStatistics& s = facts.statistics;
  const bool heavy = s.top_share >= kTopShare && s.kurtosis >= kHeavy;
  if (!heavy || s.max_abs < 0.1 || is_one_sided(facts)) return {};
  const Shape shape = shape_of(facts);
  const bool spread = shape.large_rows >= 4;
  if (!spread || shape.large_upwards == 0 || shape.large_upwards == shape.large) return {};
  return {tail_sign(facts, shape)};
}

}  // namespace gradcheck
