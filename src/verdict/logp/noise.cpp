// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "verdict/logp/signs.h"
#include "verdict/logp/statistics.h"

namespace gradcheck {
namespace {

constexpr double kDropoutNoise = 0.05;  // mean |repeat − new| that no kernel makes

Sign repeat_sign(const LogProbFacts& facts, double noise) {
  const bool dropout = noise >= kDropoutNoise;
  const bool exact_wanted = facts.regime.regime == Regime::same_kernels;
  Sign sign;
  if (dropout) sign.code = 508;
  if (!dropout && exact_wanted) sign.code = 508, sign.severity = Severity::warning;
  sign.explains = noise >= 0.3 * facts.statistics.mean_abs ? 1 : 0.3;
  sign.signature = {"repeat", Confidence::certain, false,
                    fmt::format("a repeat of the new forward differs by {} on average; old differs "
                                "by {}",
                                number_text(noise), number_text(facts.statistics.mean_abs))};
  if (dropout || exact_wanted) {
    sign.claim =
        claim_of(dropout ? Cause::dropout : Cause::nondeterministic,
                 dropout ? Confidence::certain : Confidence::likely, {sign.signature.text});
  }
  return sign;
}

Sign entropy_sign(const LogProbFacts& facts, double excess, double z) {
  const bool sharper = excess < 0;
  Sign sign;
  sign.code = 506;
  sign.explains = facts.statistics.mean_abs < 0.05 ? 1 : 0.4;
  sign.signature = {
      "surprisal", Confidence::likely,
      facts.conditions.temperature || facts.conditions.has_sampling(),
      fmt::format("the tokens are {} nats {} likely than the new distribution's "
                  "entropy says (z = {})",
                  number_text(std::fabs(excess)), sharper ? "more" : "less", number_text(z))};
  if (sharper) {
    sign.claim = claim_of(Cause::temperature, Confidence::likely,
                          {sign.signature.text,
                           "sampled from a sharper distribution than both "
                           "log-probs are of"},
                          {"top-p and top-k sharpen as well"});
  }
  return sign;
}

}  // namespace

std::vector<Sign> see_repeat(const LogProbFacts& facts) {
  const auto noise = facts.statistics.repeat_mean_abs;
  if (!noise || *noise == 0) return {};
  return {repeat_sign(facts, *noise)};
}

std::vector<Sign> see_entropy(const LogProbFacts& facts) {
  const auto excess = facts.statistics.entropy_excess;
  const auto z = facts.statistics.entropy_excess_z;
  if (!excess || !z || std::fabs(*excess) < 0.03) return {};
  if (std::fabs(*z) < sigmas_needed(facts.counts.sequences)) return {};
  return {entropy_sign(facts, *excess, *z)};
}

}  // namespace gradcheck
