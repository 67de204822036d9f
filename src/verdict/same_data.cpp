// SPDX-License-Identifier: Apache-2.0
#include "verdict/same_data.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace gradcheck {
namespace {

// Ranks by input digest, by model and moment.
using Digests = std::map<std::pair<std::string, Moment>, std::map<std::string, std::set<int>>>;

// Digests are compared as sets: ranks may take the same batches in another order. In jobs a batch
// belongs to the forward before it, and what is forwarded without gradients (an evaluation) may
// well be the same everywhere.
void read_batches(const Context& context, int rank, Digests& digests) {
  std::map<std::string, bool> trains;
  for (const EventRecord& event : context.table().rank(rank).events) {
    const bool forward =
        event.type == EventType::wrapper_forward || event.type == EventType::inner_forward;
    if (forward) trains[event.model] = event.grad_mode.value_or(true);
    if (event.type != EventType::batch || event.digest.empty()) continue;
    const auto found = trains.find(event.model);
    const bool counts = context.input.native || found == trains.end() || found->second;
    if (counts) {
      digests[{event.model, {event.step, event.micro}}][event.digest].insert(rank);
    }
  }
}

Digests batches(const Context& context, std::span<const int> group) {
  Digests digests;
  for (const int rank : group) read_batches(context, rank, digests);
  return digests;
}

// The groups over which gradients are reduced: their ranks must have data of their own.
std::set<std::vector<int>> data_groups(const Context& context) {
  std::set<std::vector<int>> groups;
  for (const PlanLine& line : context.plan.lines) {
    const bool reduced = is_auditable(line) || is_unknown(line);
    if (reduced && line.group.size() > 1) groups.insert(line.group);
  }
  return groups;
}

}  // namespace

void find_same_data(const Context& context, FindingSet& findings) {
  std::set<int> ranks;
  std::optional<Moment> first;
  for (const auto& group : data_groups(context)) {
    for (const auto& [where, digests] : batches(context, group)) {
      const Moment& moment = where.second;
      for (const auto& [digest, sharing] : digests) {
        if (sharing.size() < 2) continue;
        ranks.insert(sharing.begin(), sharing.end());
        first = first ? std::min(*first, moment) : moment;
      }
    }
  }
  if (!first) return;
  const std::vector<int> sharing(ranks.begin(), ranks.end());
  findings.say(601,
               fmt::format("ranks were given the same data: {} (first at step {}, "
                           "micro-step {})",
                           ranks_text(sharing), first->step, first->micro),
               sharing);
}

}  // namespace gradcheck
