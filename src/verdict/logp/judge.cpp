// SPDX-License-Identifier: Apache-2.0
#include "verdict/logp/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "verdict/logp/facts.h"
#include "verdict/logp/padding.h"
#include "verdict/logp/signs.h"
#include "verdict/logp/words.h"

namespace gradcheck {
namespace {

constexpr double kVisibleBias = 0.02;  // a verdict must be able to see a mean ratio off by this
constexpr std::int64_t kFewestTokens = 16;  // whatever their spread

using ShardList = std::vector<const LogProbShard*>;

bool is_updated(const LogProbShard& shard) { return shard.updates.value_or(0) > 0; }

// Shards that are a test of anything.
ShardList judged_shards(std::span<const LogProbShard> shards, const LogProbConditions& conditions) {
  ShardList judged;
  for (const LogProbShard& shard : shards) {
    const bool too_late = is_updated(shard) && !conditions.lag;
    if (!shard.aliased && !too_late) judged.push_back(&shard);
  }
  return judged;
}

std::int64_t count_if(std::span<const LogProbShard> shards, bool (*holds)(const LogProbShard&)) {
  return std::count_if(shards.begin(), shards.end(), holds);
}

void refuse_aliased(LogProbReading& reading) {
  reading.findings.push_back(
      finding_of(605, "ratio is 1 by construction: old is new, so nothing was tested"));
}

void refuse_updated(std::span<const LogProbShard> shards, LogProbReading& reading) {
  std::int64_t most = 0;
  for (const LogProbShard& shard : shards) most = std::max(most, shard.updates.value_or(0));
  reading.findings.push_back(finding_of(
      605, fmt::format("{} optimizer step{} stand{} between old and new: the ratio need not be 1",
                       most, most == 1 ? "" : "s", most == 1 ? "s" : "")));
  reading.causes.push_back(
      claim_of(Cause::after_an_update, Confidence::certain, {reading.findings.front().message}));
}

// What is said of shards that were left out while others were judged.
void note_left_out(std::span<const LogProbShard> shards, const LogProbConditions& conditions,
                   LogProbReading& reading) {
  const auto aliased = count_if(shards, [](const LogProbShard& s) { return s.aliased; });
  const auto updated = conditions.lag ? 0 : count_if(shards, is_updated);
  if (aliased > 0) {
    reading.notes.push_back(
        fmt::format("{} of {} files left out: old is new there", aliased, shards.size()));
  }
  if (updated > 0) {
    reading.notes.push_back(
        fmt::format("{} of {} files left out: an optimizer step stands between "
                    "old and new there",
                    updated, shards.size()));
  }
}

void take_facts(LogProbFacts& facts, LogProbReading& reading) {
  reading.regime = facts.regime.regime;
  reading.regime_source = facts.regime.source;
  reading.regime_reason = facts.regime.reason;
  reading.dtype = name_of(facts.dtype);
  reading.dtype_source = facts.conditions.dtype ? "given" : "assumed";
  reading.band = facts.band;
  reading.band.level = level_in(facts.band, facts.statistics);
  reading.bitwise = facts.bitwise();
  reading.counts = facts.counts;
  reading.statistics = facts.statistics;
  reading.by_rank = rank_groups(facts.ranks);
  reading.by_micro_batch = micro_batch_groups(facts.sums);
  reading.by_log_prob = log_prob_groups(facts.bins);
  reading.by_position = position_groups(facts.positions);
  reading.worst_tokens = worst_tokens(facts.shards);
  reading.worst_rows = worst_rows(facts.sums);
}

bool is_declared(const std::vector<Sign>& signs) {
  return std::any_of(signs.begin(), signs.end(), [](const Sign& sign) {
    return sign.signature.declared && sign.explains >= 0.5;
  });
}

// The number against its band, whatever the signatures say; not judged where a declared condition
// accounts for it.
void judge_number(const LogProbFacts& facts, const std::vector<Sign>& signs,
                  LogProbReading& reading) {
  const BandLevel level = reading.band.level;
  if (level == BandLevel::pass) return;
  if (is_declared(signs)) {
    reading.notes.push_back("the size of the difference is within what was declared");
    return;
  }
  const BandReason reason = reason_for(facts.band, facts.statistics);
  Finding finding = finding_of(
      501, fmt::format("{} {} is above what {} allows ({})", reason.number,
                       number_text(reason.value), facts.band.source, number_text(reason.limit)));
  if (level != BandLevel::fail) {
    finding.severity = level == BandLevel::warning ? Severity::warning : Severity::note;
  }
  finding.count = static_cast<std::uint64_t>(facts.counts.compared);
  reading.findings.push_back(finding);
}

// What accounts for most of the difference first, then the surest.
void sort_signs(std::vector<Sign>& signs) {
  std::stable_sort(signs.begin(), signs.end(), [](const Sign& a, const Sign& b) {
    const bool most_a = a.explains >= 0.5, most_b = b.explains >= 0.5;
    if (most_a != most_b) return most_a;
    return a.signature.confidence > b.signature.confidence;
  });
}

Finding finding_about(const Sign& sign) {
  Finding finding = finding_of(sign.code, sign.signature.text);
  finding.severity = sign.severity;
  finding.ranks = sign.ranks;
  finding.count = sign.count;
  return finding;
}

// Evidence of two signs for one cause stands in one claim.
void add_claim(const CauseClaim& claim, std::vector<CauseClaim>& claims) {
  for (CauseClaim& known : claims) {
    if (known.cause != claim.cause) continue;
    known.evidence.insert(known.evidence.end(), claim.evidence.begin(), claim.evidence.end());
    known.confidence = std::max(known.confidence, claim.confidence);
    return;
  }
  claims.push_back(claim);
}

void take_signs(const std::vector<Sign>& signs, LogProbReading& reading) {
  for (const Sign& sign : signs) {
    reading.signatures.push_back(sign.signature);
    if (sign.signature.declared) continue;
    if (sign.code != 0) reading.findings.push_back(finding_about(sign));
    if (sign.claim) add_claim(*sign.claim, reading.causes);
  }
}

// Causes belong to something wrong: a clean reading needs none, and a number above its band that no
// sign explains gets guesses.
void settle_causes(const LogProbFacts& facts, const std::vector<Sign>& signs,
                   LogProbReading& reading) {
  const bool wrong = std::any_of(reading.findings.begin(), reading.findings.end(),
                                 [](const Finding& f) { return f.code / 100 == 5; });
  if (!wrong) {
    reading.causes.clear();
    return;
  }
  const bool explained = std::any_of(signs.begin(), signs.end(), [](const Sign& sign) {
    return sign.claim && !sign.signature.declared && sign.explains >= 0.5;
  });
  const bool loud = std::any_of(
      reading.findings.begin(), reading.findings.end(),
      [](const Finding& f) { return f.code == 501 && f.severity >= Severity::warning; });
  if (explained || !loud) return;
  for (const CauseClaim& guess : guesses(facts)) add_claim(guess, reading.causes);
}

// Tokens needed to see a bias of kVisibleBias at 4 standard errors; 0 where there are enough.
std::int64_t tokens_needed(const LogProbFacts& facts) {
  if (facts.bitwise()) return 0;
  const double times = std::pow(facts.statistics.detectable_bias / kVisibleBias, 2);
  const auto tokens = static_cast<double>(facts.counts.compared);
  const auto needed = static_cast<std::int64_t>(std::min(1e15, std::ceil(tokens * times)));
  const std::int64_t least = std::max(needed, kFewestTokens);
  return least > facts.counts.compared ? least : 0;
}

void judge_power(const LogProbFacts& facts, LogProbReading& reading) {
  reading.tokens_needed = tokens_needed(facts);
  if (reading.tokens_needed == 0) return;
  reading.findings.push_back(finding_of(
      607, fmt::format("{} cannot show that the mean ratio is 1 to within {}; about {} would",
                       tokens_text(facts.counts.compared), percent_text(kVisibleBias),
                       reading.tokens_needed)));
}

bool has_error(const LogProbReading& reading, bool accusing) {
  return std::any_of(reading.findings.begin(), reading.findings.end(), [&](const Finding& f) {
    return f.severity == Severity::error && (f.code / 100 == 5) == accusing;
  });
}

Outcome outcome_of(const LogProbReading& reading) {
  if (has_error(reading, true)) return Outcome::inconsistent;
  const bool open = has_error(reading, false) || reading.counts.compared == 0;
  return open ? Outcome::inconclusive : Outcome::consistent;
}

void sort_findings(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
}

using Values = std::vector<double> LogProbShard::*;

// `to` − `from` over tokens that count, where every judged shard has both.
void add_pair(const LogProbFacts& facts, const char* name, Values to, Values from,
              LogProbReading& reading) {
  DeltaSums sums;
  double k3 = 0;
  for (const LogProbShard* shard : facts.shards) {
    const std::vector<double>& a = shard->*to;
    const std::vector<double>& b = shard->*from;
    if (a.empty() || b.empty()) return;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!counts(*shard, i) || !std::isfinite(a[i]) || !std::isfinite(b[i])) continue;
      const double delta = a[i] - b[i], up = std::expm1(delta);
      add_token(sums, b[i], delta, up);
      k3 += up - delta;
    }
  }
  if (sums.tokens == 0) return;
  reading.pairs.push_back({name, sums.tokens, sums.mean(), sums.mean_abs(), sums.largest,
                           k3 / static_cast<double>(sums.tokens)});
}

// The three-way reading of engine, old and new, and the distance to the reference model.
void add_pairs(const LogProbFacts& facts, LogProbReading& reading) {
  using S = LogProbShard;
  add_pair(facts, "old - rollout", &S::old_values, &S::rollout, reading);
  add_pair(facts, "new - rollout", &S::new_values, &S::rollout, reading);
  add_pair(facts, "new - ref", &S::new_values, &S::ref, reading);
}

void judge_facts(LogProbFacts facts, LogProbReading& reading) {
  take_facts(facts, reading);
  add_pairs(facts, reading);
  std::vector<Sign> signs = see_all(facts);
  sort_signs(signs);
  take_signs(signs, reading);
  if (facts.counts.compared == 0) {
    const char* why =
        facts.counts.tokens == 0 ? "the mask selects no token" : "no token is finite on both sides";
    reading.findings.push_back(finding_of(604, why));
    return;
  }
  judge_number(facts, signs, reading);
  settle_causes(facts, signs, reading);
  if (!has_error(reading, true) && !is_declared(signs)) judge_power(facts, reading);
}

}  // namespace

LogProbReading judge_log_probs(std::span<const LogProbShard> shards,
                               const LogProbConditions& conditions) {
  LogProbReading reading;
  ShardList judged = judged_shards(shards, conditions);
  std::vector<LogProbShard> masked;  // copies of what came without a mask but with padding
  const std::int64_t padding = mask_padding(judged, masked);
  if (padding > 0) {
    reading.notes.push_back(
        fmt::format("no mask was given: {} at the ends of rows, exactly 0 on "
                    "both sides, were taken for padding",
                    tokens_text(padding)));
  }
  const bool all_aliased = !shards.empty() && count_if(shards, [](const LogProbShard& s) {
                                                return s.aliased;
                                              }) == static_cast<std::int64_t>(shards.size());
  if (shards.empty()) {
    reading.findings.push_back(finding_of(604, "there are no log-probs"));
  } else if (!judged.empty()) {
    note_left_out(shards, conditions, reading);
    judge_facts(measure(std::move(judged), conditions), reading);
  } else if (all_aliased) {
    refuse_aliased(reading);
  } else {
    refuse_updated(shards, reading);
  }
  sort_findings(reading.findings);
  reading.outcome = outcome_of(reading);
  reading.harm = harm_of(reading);
  reading.headline = headline_of(reading);
  return reading;
}

}  // namespace gradcheck
