// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "verdict/logp/signs.h"

namespace gradcheck {
namespace {

CauseClaim guess(Cause cause, const LogProbFacts& facts, std::string against) {
  const LogProbStatistics& s = facts.statistics;
  return claim_of(cause, Confidence::possible,
                  {fmt::format("Δ has mean {} and sd {} (kurtosis {}), and no trend over "
                               "log-probs, positions or ranks was seen",
                               number_text(s.mean), number_text(s.sd), number_text(s.kurtosis))},
                  {std::move(against)});
}

constexpr double kMostOfLogits = 0.1;  // mean |delta| of bf16 logits, up to logits of 100

}  // namespace

std::vector<CauseClaim> guesses(const LogProbFacts& facts) {
  std::vector<CauseClaim> claims;
  const Regime regime = facts.regime.regime;
  const bool rounding = facts.statistics.mean_abs <= kMostOfLogits;
  const CauseClaim logits = guess(Cause::low_precision_logits, facts,
                                  "other weights or kernels look alike; rerun with a float32 head");
  const CauseClaim weights =
      guess(Cause::stale_weights, facts, "a checksum of the weights would settle it");
  if (regime == Regime::quantised) {
    claims.push_back(guess(Cause::quantised_rollout, facts, "stale weights look alike"));
  }
  if (rounding) claims.push_back(logits);
  claims.push_back(weights);
  if (regime == Regime::other_engine) {
    claims.push_back(guess(Cause::quantised_rollout, facts, "the regime was not stated"));
  }
  if (!rounding && regime != Regime::quantised) {
    claims.push_back(guess(Cause::dropout, facts, "a repeat of the forward would settle it"));
  }
  return claims;
}

}  // namespace gradcheck
