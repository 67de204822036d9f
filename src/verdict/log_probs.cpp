// SPDX-License-Identifier: Apache-2.0
#include "verdict/log_probs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "verdict/logp/judge.h"
#include "verdict/precisions.h"

namespace gradcheck {
namespace {

constexpr std::size_t kNotes = 4;  // readings that are told in a sentence each

// How the arrays of one name were made, over all steps and ranks.
struct Tally {
  std::size_t all = 0;
  std::size_t aliased = 0;
  std::size_t late = 0;     // optimizer steps lie between old and new
  std::size_t unknown = 0;  // nobody knows how many
  std::size_t unwritten = 0;
  std::string why;  // the first of these was not written
};

bool is_test(const LogProbShard& shard) { return !shard.aliased && shard.updates == 0; }

std::map<std::string, Tally> tallies(const Context& context) {
  std::map<std::string, Tally> tallies;
  for (const LogProbSet& set : context.input.log_probs) {
    Tally& tally = tallies[set.name];
    tally.all += set.shards.size() + set.unwritten.size();
    tally.unwritten += set.unwritten.size();
    if (tally.why.empty() && !set.unwritten.empty()) tally.why = set.unwritten.front().second;
    for (const LogProbShard& shard : set.shards) {
      tally.aliased += shard.aliased;
      tally.late += !shard.aliased && shard.updates.value_or(0) > 0;
      tally.unknown += !shard.aliased && !shard.updates;
    }
  }
  return tallies;
}

template <typename Set>
std::string place_of(const Set& set) {
  return fmt::format("log-probs '{}' of step {}", set.name, set.step);
}

// A trainer's own old log-probs come from the program, and from the weights, that make the new
// ones.
bool is_own(std::string_view source) {
  return source.starts_with("trl ") || source.starts_with("native ");
}

// The lab makes both with one function, of logits of one shape.
LogProbConditions conditions_of(const Context& context, const LogProbSet& set) {
  LogProbConditions conditions;
  if (is_own(set.source)) conditions.regime = Regime::same_stack;
  if (context.input.native) conditions.regime = Regime::same_kernels;
  return conditions;
}

LogProbReading read(const Context& context, const LogProbSet& set) {
  std::vector<LogProbShard> tests;
  std::copy_if(set.shards.begin(), set.shards.end(), std::back_inserter(tests), is_test);
  return judge_log_probs(tests, conditions_of(context, set));
}

// One finding a name and code: the first message, and where else it was so.
struct Seen {
  Finding first;
  std::string place;
  std::size_t more = 0;  // steps
};

using SeenFindings = std::map<std::pair<std::string, int>, Seen>;

// What cannot be said (GC6xx) is no finding of the job's, but of the scope.
void gather(const LogProbSet& set, const LogProbReading& reading, SeenFindings& seen) {
  for (const Finding& finding : reading.findings) {
    if (finding.code / 100 != 5) continue;
    const auto [at, is_new] = seen.try_emplace({set.name, finding.code});
    Seen& one = at->second;
    const bool is_worse = is_new || finding.severity > one.first.severity;
    one.more += !is_new;
    if (!is_worse) continue;
    one.first = finding;
    one.first.step = set.step;
    one.place = place_of(set);
  }
}

void tell(const SeenFindings& seen, FindingSet& findings) {
  for (const auto& [key, one] : seen) {
    std::string message = fmt::format("{}: {}", one.place, one.first.message);
    if (one.more > 0) message += fmt::format(" (and in {})", counted(one.more, "more step"));
    findings.say(one.first.code, message, one.first.ranks);
    findings.soften(one.first.code, message, one.first.severity);
  }
}

// False where its wrappers' groups hold none of the ranks that handed something over: a critic's
// rank has no log-probs.
bool trains_with(const EvidenceTable& table, int rank, const std::vector<int>& missing) {
  const auto& groups = table.rank(rank).groups;
  const auto is_present = [&](int other) {
    return std::find(missing.begin(), missing.end(), other) == missing.end();
  };
  return groups.empty() || std::any_of(groups.begin(), groups.end(), [&](const GroupRecord& group) {
           return std::any_of(group.ranks.begin(), group.ranks.end(), is_present);
         });
}

void tell_missing(const EvidenceTable& table, const LogProbSet& set, FindingSet& findings) {
  std::vector<int> ranks;
  std::copy_if(set.missing.begin(), set.missing.end(), std::back_inserter(ranks),
               [&](int rank) { return trains_with(table, rank, set.missing); });
  if (ranks.empty()) return;
  findings.say(604, fmt::format("{}: {} handed over none", place_of(set), ranks_text(ranks)),
               ranks);
}

// Of a rank that wrote none at all, none is known to be equal.
void tell_unwritten(const LogProbSet& set, FindingSet& findings) {
  for (const auto& [rank, why] : set.unwritten) {
    const bool wrote =
        std::any_of(set.shards.begin(), set.shards.end(),
                    [rank = rank](const LogProbShard& shard) { return shard.rank == rank; });
    if (wrote) continue;
    findings.say(604, fmt::format("{}: rank {} wrote none: {}", place_of(set), rank, why), {rank});
  }
}

// The line that made low-precision log-probs, where only one was seen.
std::string site_of(const Context& context, Cause cause) {
  if (cause != Cause::bf16_log_softmax && cause != Cause::low_precision_logsumexp) return "";
  const std::vector<std::string> sites = coarse_call_sites(context.table());
  return sites.size() == 1 ? sites.front() : "";
}

void claim(const Context& context, const LogProbArm& judged, std::vector<CauseClaim>& claims) {
  for (CauseClaim cause : judged.reading.causes) {
    const bool known = std::any_of(claims.begin(), claims.end(), [&](const CauseClaim& other) {
      return other.cause == cause.cause && other.model == cause.model;
    });
    if (known || (cause.cause == Cause::stale_weights && is_own(judged.source))) continue;
    if (cause.site.empty()) cause.site = site_of(context, cause.cause);
    for (std::string& evidence : cause.evidence) evidence = place_of(judged) + ": " + evidence;
    claims.push_back(std::move(cause));
  }
}

void tell_aliases(const std::map<std::string, Tally>& tallies, FindingSet& findings) {
  for (const auto& [name, tally] : tallies) {
    if (tally.aliased == 0) continue;
    const std::string message =
        fmt::format("log-probs '{}': ratio is 1 by construction, old is new in {} of {}", name,
                    tally.aliased, tally.all);
    findings.say(605, message);
    findings.soften(605, message, Severity::note);
  }
}

void add_line(std::vector<std::string>& lines, const std::string& name, std::size_t count,
              std::size_t all, const std::string& what) {
  if (count > 0)
    lines.push_back(fmt::format("log-probs '{}': {} of {} {}", name, count, all, what));
}

void add_lines(std::vector<std::string>& lines, const std::string& name, const Tally& tally) {
  add_line(lines, name, tally.aliased, tally.all, "old is new: ratio is 1 by construction");
  add_line(lines, name, tally.late, tally.all, "with optimizer steps between old and new");
  add_line(lines, name, tally.unknown, tally.all,
           "where it is not known how many optimizer steps lie between old and new: hand old over "
           "where it is made");
  add_line(lines, name, tally.unwritten, tally.all, "not written: " + tally.why);
}

}  // namespace

void judge_log_prob_sets(const Context& context, FindingSet& findings, ArmReport& arm) {
  SeenFindings seen;
  for (const LogProbSet& set : context.input.log_probs) {
    tell_missing(context.table(), set, findings);
    if (std::none_of(set.shards.begin(), set.shards.end(), is_test)) continue;
    tell_unwritten(set, findings);
    arm.logp.push_back({set.step, set.name, set.source, read(context, set)});
    const LogProbArm& judged = arm.logp.back();
    gather(set, judged.reading, seen);
    // Of the others findings and scope tell.
    if (judged.reading.outcome == Outcome::consistent && arm.logp.size() <= kNotes) {
      arm.notes.push_back(place_of(judged) + ": " + judged.reading.headline);
    }
  }
  tell(seen, findings);
  tell_aliases(tallies(context), findings);
}

void name_log_prob_causes(const Context& context, std::span<const LogProbArm> readings,
                          std::vector<CauseClaim>& causes) {
  for (const LogProbArm& judged : readings) claim(context, judged, causes);
}

std::vector<std::string> log_probs_not_checked(const Context& context, const ArmReport& arm) {
  const bool none = context.input.log_probs.empty();
  if (none && context.input.native) return {};
  if (none) return {log_probs_not_seen(context.table())};
  std::vector<std::string> lines;
  for (const auto& [name, tally] : tallies(context)) add_lines(lines, name, tally);
  for (const LogProbArm& judged : arm.logp) {
    for (const Finding& finding : judged.reading.findings) {
      if (finding.code / 100 != 6) continue;
      lines.push_back(place_of(judged) + ": " + finding.message);
    }
  }
  return lines;
}

}  // namespace gradcheck
