// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "verdict/logp/declared.h"
#include "verdict/logp/shape.h"
#include "verdict/logp/signs.h"

namespace gradcheck {
namespace {

constexpr double kNoticeable = 5e-3;  // mean |delta| below which a trend is nobody's cause
constexpr double kCoherent = 0.6;     // |mean| / mean |delta| in a range of log-probs
constexpr double kFlattening = 0.5;
constexpr std::int64_t kFewest = 8;

double coherence(const DeltaSums& sums) {
  return sums.tokens >= kFewest && sums.absolute > 0 ? sums.delta / sums.absolute : 0;
}

std::string ends_text(const Ends& ends) {
  return fmt::format("mean Δ is {} for tokens below −4 and {} for tokens above −1",
                     number_text(ends.rare.mean()), number_text(ends.likely.mean()));
}

// Rare and likely tokens move apart, each all in one direction.
bool is_tempered(const Ends& ends, const Trend& over_entropy) {
  const double rare = coherence(ends.rare), likely = coherence(ends.likely);
  const bool apart = rare * likely < 0 && std::fabs(likely) >= 0.8 && std::fabs(rare) >= kCoherent;
  return apart || over_entropy.r2 >= 0.7;
}

Sign temperature_sign(const LogProbFacts& facts, const Ends& ends, const Trend& over_entropy) {
  const bool sharper = ends.likely.mean() > 0;
  Sign sign;
  sign.explains = 1;
  sign.signature = {
      "temperature", Confidence::likely, fits_the_temperature(facts),
      fmt::format("{}: new is {} than old", ends_text(ends), sharper ? "sharper" : "flatter")};
  std::vector<std::string> evidence = {sign.signature.text};
  if (facts.conditions.temperature && !sign.signature.declared) {
    evidence.push_back(fmt::format("a temperature of {}, as declared, cannot make so much",
                                   number_text(*facts.conditions.temperature)));
  }
  if (over_entropy.r2 >= 0.7 && over_entropy.slope > -0.9) {
    evidence.push_back(
        fmt::format("old + entropy explains {} of the variance, as new = old at "
                    "temperature {} would",
                    percent_text(over_entropy.r2), number_text(1 / (1 + over_entropy.slope))));
  }
  evidence.push_back(sharper ? "old is raw and new tempered: ask the engine for processed log-probs"
                             : "old is tempered and new is not: divide the logits before new");
  sign.claim = claim_of(Cause::temperature, Confidence::likely, std::move(evidence));
  return sign;
}

Sign dropout_sign(const Ends& ends) {
  Sign sign;
  sign.explains = 0.5;
  sign.signature = {"flattening", Confidence::possible, false,
                    ends_text(ends) + ", with much spread: new is flatter and noisy"};
  sign.claim = claim_of(Cause::dropout, Confidence::likely, {sign.signature.text},
                        {"no repeat of the forward was given, which would settle it"});
  return sign;
}

// The error of a logsumexp does not shrink where a token is certain; of logits, weights and dropout
// it does.
bool is_flat_over_probability(const LogProbFacts& facts, const Ends& ends) {
  const LogProbStatistics& s = facts.statistics;
  return ends.sure.tokens >= kFewest && ends.sure.mean_abs() >= 0.5 * s.mean_abs &&
         s.kurtosis < 2.7 && s.max_abs <= 0.5 && std::fabs(coherence(ends.likely)) < kFlattening;
}

Sign logsumexp_sign(const LogProbFacts& facts, const Ends& ends) {
  Sign sign;
  sign.explains = 1;
  sign.signature = {
      "flat", Confidence::likely, false,
      fmt::format("tokens above 95 % differ by {} on average, all tokens by {}, and "
                  "none by more than {}",
                  number_text(ends.sure.mean_abs()), number_text(facts.statistics.mean_abs),
                  number_text(facts.statistics.max_abs))};
  sign.claim = claim_of(
      Cause::low_precision_logsumexp, Confidence::likely,
      {sign.signature.text, fmt::format("spread evenly (kurtosis {}, a uniform one has 1.8)",
                                        number_text(facts.statistics.kurtosis))});
  return sign;
}

}  // namespace

std::vector<Sign> see_trends(const LogProbFacts& facts) {
  if (facts.statistics.mean_abs < kNoticeable || is_one_sided(facts)) return {};
  const Ends ends = ends_of(facts);
  const Trend over_entropy = trend_over_entropy(facts);
  if (is_tempered(ends, over_entropy)) return {temperature_sign(facts, ends, over_entropy)};
  if (is_flat_over_probability(facts, ends)) return {logsumexp_sign(facts, ends)};
  // Coarse weights flatten as well; where they are declared they are the nearer cause.
  const bool known =
      facts.statistics.repeat_mean_abs.has_value() || facts.regime.regime == Regime::quantised;
  const bool flattened = coherence(ends.likely) <= -kFlattening && facts.statistics.mean_abs > 0.05;
  if (flattened && !known) return {dropout_sign(ends)};
  return {};
}

}  // namespace gradcheck
