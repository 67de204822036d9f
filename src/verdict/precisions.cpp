// SPDX-License-Identifier: Apache-2.0
#include "verdict/precisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace gradcheck {
namespace {

// What two ranks have in common when they come to the same line in the same way.
struct Call {
  std::string site;
  std::string op;
  std::string dtype;  // of the result: what autocast and a cast on the way have made of it
  std::optional<bool> grad_mode;
  bool autocast = false;

  auto operator<=>(const Call&) const = default;
};

// Ranks by call, by number of classes.
using Calls = std::map<std::uint64_t, std::map<Call, std::set<int>>>;

Calls read_calls(const EvidenceTable& table) {
  Calls calls;
  for (const int rank : every_rank(table.world_size())) {
    for (const EventRecord& event : table.rank(rank).events) {
      if (event.type != EventType::log_softmax) continue;
      const std::string& dtype = event.result_dtype.empty() ? event.dtype : event.result_dtype;
      calls[event.classes]
           [{event.site, event.op, dtype, event.grad_mode, event.autocast.value_or(false)}]
               .insert(rank);
    }
  }
  return calls;
}

bool is_coarse(const Call& call) { return call.dtype == "bf16" || call.dtype == "f16"; }

// Without its site or type a call cannot be told from another.
bool are_two_precisions(const Call& coarse, const Call& other) {
  const bool known = !coarse.site.empty() && !other.site.empty() && !other.dtype.empty();
  return known && is_coarse(coarse) && coarse.site != other.site && coarse.dtype != other.dtype;
}

using Pair = std::pair<Call, Call>;

// The first pair; old and new log-probs, of which only the new have a gradient, come before others.
std::optional<Pair> find_pair(const std::map<Call, std::set<int>>& calls) {
  std::optional<Pair> found;
  for (const auto& [coarse, ranks] : calls) {
    for (const auto& [other, others] : calls) {
      if (!are_two_precisions(coarse, other)) continue;
      if (coarse.grad_mode != other.grad_mode) return Pair(coarse, other);
      if (!found) found = Pair(coarse, other);
    }
  }
  return found;
}

std::string words_for(const Call& call) {
  std::string how;
  if (call.grad_mode) how = *call.grad_mode ? "grad" : "no_grad";
  if (call.autocast) how += how.empty() ? "autocast" : ", autocast";
  if (!how.empty()) how = " (" + how + ")";
  return fmt::format("{} in {} at {}{}", call.op, call.dtype, call.site, how);
}

}  // namespace

void find_two_precisions(const Context& context, FindingSet& findings) {
  for (const auto& [classes, calls] : read_calls(context.table())) {
    const auto pair = find_pair(calls);
    if (!pair) continue;
    std::set<int> ranks = calls.at(pair->first);
    ranks.insert(calls.at(pair->second).begin(), calls.at(pair->second).end());
    findings.say(590,
                 fmt::format("two precisions at two call sites over {} classes: {}, {}", classes,
                             words_for(pair->first), words_for(pair->second)),
                 {ranks.begin(), ranks.end()});
  }
}

std::vector<std::string> coarse_call_sites(const EvidenceTable& table) {
  std::set<std::string> sites;
  for (const auto& [classes, calls] : read_calls(table)) {
    for (const auto& [call, ranks] : calls) {
      const bool is_new = call.grad_mode.value_or(false);
      if (is_new && is_coarse(call) && !call.site.empty()) sites.insert(call.site);
    }
  }
  return {sites.begin(), sites.end()};
}

std::string log_probs_not_seen(const EvidenceTable& table) {
  std::uint64_t count = 0;
  for (const auto& [classes, calls] : read_calls(table)) count += calls.size();
  if (count == 0) return "log-probs: not seen";
  return fmt::format("log-probs: {} seen, no arrays", counted(count, "call"));
}

}  // namespace gradcheck
