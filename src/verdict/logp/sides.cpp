// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "verdict/logp/declared.h"
#include "verdict/logp/shape.h"
#include "verdict/logp/signs.h"
#include "verdict/logp/statistics.h"

namespace gradcheck {
namespace {

constexpr double kOneSided = 0.9;  // |mean| / mean |delta|
constexpr double kNarrow = 0.3;    // sd / |mean| where the kept mass is near top-p everywhere
constexpr double kDeep = -6;       // old log-probs that a filtered distribution hardly has
constexpr double kDeepShare = 0.01;
constexpr double kBoundSlack = 0.05;  // nats: engine noise of the lowest token

Sign one_sided(const LogProbFacts& facts, Cause cause, Confidence confidence, std::string text,
               std::vector<std::string> against) {
  Sign sign;
  sign.explains = 1;
  sign.signature = {"one_sided", confidence, false, std::move(text)};
  sign.claim = claim_of(
      cause, confidence,
      {sign.signature.text,
       fmt::format("mean ratio {} instead of 1", number_text(1 + facts.statistics.mean_ratio))},
      std::move(against));
  return sign;
}

std::string sides_text(const LogProbFacts& facts, const Shape& shape) {
  const auto n = static_cast<double>(facts.counts.compared);
  return fmt::format("{} of Δ are {} 0, from {} to {}",
                     percent_text(static_cast<double>(std::max(shape.above, shape.below)) / n),
                     shape.below > shape.above ? "below" : "above", number_text(shape.lowest),
                     number_text(shape.highest));
}

// Two tokens of one distribution share its mass, so where old belongs to another token than new,
// their probabilities sum to 1 at most; a renormalised old would pass 1 at confident tokens.
bool is_wrong_token(const LogProbFacts& facts, const Shape& shape) {
  const bool most_equal = facts.statistics.p50 <= 0.02 * facts.statistics.mean_abs;
  return most_equal && shape.below > shape.above && shape.large >= 8 && shape.large_upwards == 0 &&
         shape.large_over_one == 0;
}

// Filters cut the tail of unlikely tokens that a padded vocabulary leaves.
bool has_deep_tail(const LogProbFacts& facts) {
  std::int64_t deep = 0;
  for_each_token(facts.shards, [&](const LogProbShard& shard, std::size_t i) {
    deep += shard.old_values[i] < kDeep ? 1 : 0;
  });
  return static_cast<double>(deep) >= kDeepShare * static_cast<double>(facts.counts.compared);
}

Sign kept_mass(const LogProbFacts& facts, const Shape& shape) {
  const double spread = facts.statistics.sd / std::fabs(facts.statistics.mean);
  const char* side = facts.statistics.mean < 0 ? "old" : "new";
  if (spread > kNarrow && has_deep_tail(facts)) {
    return one_sided(
        facts, Cause::vocabulary_padding, Confidence::possible,
        fmt::format("{}; the {} side has mass that the other lacks", sides_text(facts, shape),
                    facts.statistics.mean < 0 ? "new" : "old"),
        {"sampling renormalised over few kept tokens looks alike"});
  }
  return one_sided(
      facts, Cause::renormalised_sampling, Confidence::likely,
      fmt::format("{}: {} is normalised over {} of the mass", sides_text(facts, shape), side,
                  percent_text(std::exp(-facts.statistics.mean_abs))),
      {spread <= kNarrow ? "none" : "a larger vocabulary on the other side looks alike"});
}

// Top-p keeps that mass at least: no token can be further below.
bool fits_the_sampling(double lowest, const LogProbFacts& facts) {
  const LogProbConditions& declared = facts.conditions;
  return declared.has_sampling() &&
         (!declared.top_p || lowest >= std::log(*declared.top_p) - kBoundSlack);
}

// Where the sampling was declared, that is what it looks like.
Sign as_declared(Sign sign, const LogProbFacts& facts, const Shape& shape) {
  const bool sampling = sign.claim->cause == Cause::renormalised_sampling;
  if (!sampling || !fits_the_sampling(shape.lowest, facts)) return sign;
  sign.signature.declared = true;
  sign.signature.text += "; as declared with --sampling";
  return sign;
}

Sign bias_sign(const LogProbFacts& facts) {
  const LogProbStatistics& s = facts.statistics;
  Sign sign;
  sign.code = 506;
  sign.signature = {"bias", Confidence::certain, false,
                    fmt::format("the mean ratio is {} ± {} (z = {})", number_text(1 + s.mean_ratio),
                                number_text(s.mean_ratio_se), number_text(*s.z))};
  sign.signature.declared =
      fits_the_sampling(std::log1p(s.mean_ratio), facts) || fits_the_temperature(facts);
  return sign;
}

}  // namespace

bool is_one_sided(const LogProbFacts& facts) {
  const LogProbStatistics& s = facts.statistics;
  return facts.counts.compared >= 16 && s.mean_abs > 1e-4 &&
         std::fabs(s.mean) >= kOneSided * s.mean_abs;
}

bool is_biased(const LogProbFacts& facts) {
  const LogProbStatistics& s = facts.statistics;
  const double symmetric = s.mean_ratio > 0 ? 1.25 * (s.k3 + s.k3_reversed) : 0;
  return s.z && std::fabs(*s.z) >= sigmas_needed(facts.counts.sequences) &&
         std::fabs(s.mean_ratio) > 1e-3 + symmetric;
}

std::vector<Sign> see_sides(const LogProbFacts& facts) {
  if (!is_one_sided(facts)) return {};
  const Shape shape = shape_of(facts);
  if (is_wrong_token(facts, shape)) {
    return {
        one_sided(facts, Cause::wrong_token, Confidence::likely,
                  fmt::format("{} differ, none upwards: old is the log-prob of a likelier token",
                              of_all_text(shape.large, facts.counts.compared)),
                  {})};
  }
  return {as_declared(kept_mass(facts, shape), facts, shape)};
}

std::vector<Sign> see_bias(const LogProbFacts& facts) {
  if (!is_biased(facts)) return {};
  return {bias_sign(facts)};
}

}  // namespace gradcheck
