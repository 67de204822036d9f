// SPDX-License-Identifier: Apache-2.0
#include "verdict/logp/words.h"

#include <fmt/format.h>

#include <cmath>

#include "verdict/logp/bands.h"
#include "verdict/logp/signs.h"

namespace gradcheck {
namespace {

constexpr double kSmallShare = 0.01;  // of tokens beyond the clip range

std::string clip_text(const LogProbReading& reading) {
  return reading.statistics.outside_clip ? "the clip range" : "±20 %";
}

const LogProbSignature* first_fault(const LogProbReading& reading) {
  for (const LogProbSignature& signature : reading.signatures) {
    if (!signature.declared) return &signature;
  }
  return nullptr;
}

// The finding whose text leads: an error before a warning before a note, in their order.
std::string lead_of(const LogProbReading& reading) {
  return reading.findings.empty() ? "" : reading.findings.front().message;
}

std::string difference_text(const LogProbReading& reading) {
  return fmt::format("old and new differ by {} on average",
                     number_text(reading.statistics.mean_abs));
}

std::string quiet_headline(const LogProbReading& reading) {
  const LogProbSignature* seen = first_fault(reading);
  if (seen != nullptr) return difference_text(reading) + ": " + seen->text;
  const BandReason reason = reason_for(reading.band, reading.statistics);
  return fmt::format("{}: within the noise of {} ({} {}, limit {})", difference_text(reading),
                     reading.band.source, reason.number, number_text(reason.value),
                     number_text(reason.limit));
}

std::string confidence_text(const LogProbReading& reading) {
  if (reading.causes.empty()) return "";
  const CauseClaim& claim = reading.causes.front();
  return fmt::format("; {} ({})", name_of(claim.cause), name_of(claim.confidence));
}

}  // namespace

std::string harm_of(const LogProbReading& reading) {
  const LogProbStatistics& s = reading.statistics;
  if (reading.counts.compared == 0) return "unknown";
  if (reading.bitwise) return "none";
  const double outside = s.outside_clip.value_or(s.outside_20);
  if (outside == 0) return "small: no token outside " + clip_text(reading);
  return fmt::format("{}: {} of the tokens outside {}", outside <= kSmallShare ? "small" : "large",
                     percent_text(outside), clip_text(reading));
}

std::string headline_of(const LogProbReading& reading) {
  if (reading.counts.compared == 0) return lead_of(reading);
  if (reading.bitwise && reading.findings.empty()) {
    return fmt::format("old and new are bitwise equal: {}", tokens_text(reading.counts.compared));
  }
  if (reading.outcome == Outcome::inconclusive) return lead_of(reading);
  if (reading.findings.empty()) return quiet_headline(reading);
  return fmt::format("{}: {}{}; harm {}", difference_text(reading), lead_of(reading),
                     confidence_text(reading), reading.harm);
}

}  // namespace gradcheck
