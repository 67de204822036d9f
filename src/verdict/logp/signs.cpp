// SPDX-License-Identifier: Apache-2.0
#include "verdict/logp/signs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gradcheck {
namespace {

using Test = std::vector<Sign> (*)(const LogProbFacts&);

constexpr Test kExact[] = {see_values, see_missing, see_precision, see_places};
constexpr Test kShapes[] = {see_sides, see_trends, see_profiles, see_tails};
constexpr Test kRest[] = {see_repeat, see_entropy, see_ranks, see_bias};

template <std::size_t N>
void see(const Test (&tests)[N], const LogProbFacts& facts, std::vector<Sign>& signs) {
  for (const Test test : tests) {
    for (Sign& sign : test(facts)) signs.push_back(std::move(sign));
  }
}

bool is_settled(const std::vector<Sign>& signs) {
  return std::any_of(signs.begin(), signs.end(), [](const Sign& sign) {
    return sign.signature.confidence == Confidence::certain && sign.explains >= 0.9;
  });
}

// Log-probs padded at the front with 0.0 stand beside their tokens too: the padding is the cause.
void join_padding_and_shift(std::vector<Sign>& signs) {
  const bool shifted = std::any_of(signs.begin(), signs.end(),
                                   [](const Sign& sign) { return sign.signature.name == "shift"; });
  for (Sign& sign : signs) {
    if (!shifted || sign.signature.name != "missing_at_front") continue;
    sign.explains = 1;
    sign.claim->evidence.push_back(
        "filled at the front, so all that follow stand beside their "
        "tokens");
  }
}

}  // namespace

std::vector<Sign> see_all(const LogProbFacts& facts) {
  std::vector<Sign> signs;
  see(kExact, facts, signs);
  join_padding_and_shift(signs);
  if (facts.counts.compared == 0 || facts.bitwise()) return signs;
  if (!is_settled(signs)) see(kShapes, facts, signs);
  see(kRest, facts, signs);
  return signs;
}

std::string number_text(double value) {
  const double magnitude = std::fabs(value);
  if (magnitude == 0 || (magnitude >= 0.01 && magnitude < 1e4)) return fmt::format("{:.2g}", value);
  std::string text = fmt::format("{:.1e}", value);
  const std::size_t e = text.find('e');
  if (e == std::string::npos) return text;
  return text.substr(0, e + 1) + std::to_string(std::stoi(text.substr(e + 1)));
}

std::string percent_text(double share) {
  const double percent = 100 * share;
  return fmt::format(
      "{} %", percent >= 10 ? fmt::format("{:.0f}", percent) : fmt::format("{:.2g}", percent));
}

std::string tokens_text(std::int64_t count) {
  return fmt::format("{} token{}", count, count == 1 ? "" : "s");
}

std::string of_all_text(std::int64_t count, std::int64_t all) {
  return fmt::format("{} of {}", count, tokens_text(all));
}

CauseClaim claim_of(Cause cause, Confidence confidence, std::vector<std::string> evidence,
                    std::vector<std::string> against) {
  CauseClaim claim;
  claim.cause = cause;
  claim.confidence = confidence;
  claim.evidence = std::move(evidence);
  claim.against = std::move(against);
  claim.next = info_of(cause).next;
  return claim;
}

}  // namespace gradcheck
