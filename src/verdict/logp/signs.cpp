// SPDX-License-Identifier: Apache-2.0
#include "verdict/logp/signs.h"

#include <fmt/format.h>

#include <cmath>

namespace gradcheck {
namespace {

using Test = std::vector<Sign> (*)(const LogProbFacts&);

constexpr Test kTests[] = {see_values, see_missing, see_precision};

}  // namespace

std::vector<Sign> see_all(const LogProbFacts& facts) {
  std::vector<Sign> all;
  for (const Test test : kTests) {
    for (Sign& sign : test(facts)) all.push_back(std::move(sign));
  }
  return all;
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
