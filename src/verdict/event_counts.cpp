// SPDX-License-Identifier: Apache-2.0
#include "verdict/event_counts.h"

#include <algorithm>
#include <map>

namespace gradcheck {
namespace {

bool runs_backward(const RankEvidence& rank, std::string_view model) {
  return std::any_of(rank.events.begin(), rank.events.end(), [&](const EventRecord& event) {
    return event.type == EventType::backward && concerns(event, model);
  });
}

// The first site, unless a later backward is the first that escaped.
void count_backward(BackwardCounts& counts, const EventRecord& event) {
  const bool no_sync = event.no_sync.value_or(false);
  const bool armed = event.armed.value_or(false);
  ++counts.all;
  counts.outside_no_sync += !no_sync;
  counts.armed += !no_sync && armed;
  if (counts.site.empty() || (!armed && counts.armed > 0)) counts.site = event.site;
}

// Whether the last backward before a step ran under no_sync decides what the optimizer got.
BackwardCounts count_rank(const RankEvidence& rank, std::string_view model) {
  BackwardCounts counts;
  bool last = false;
  for (const EventRecord& event : rank.events) {
    if (!concerns(event, model)) continue;
    if (event.type == EventType::backward) {
      count_backward(counts, event);
      last = event.no_sync.value_or(false);
    } else if (event.type == EventType::optimizer_step) {
      counts.last_under_no_sync |= last;
    }
  }
  return counts;
}

void count_event(EventTotals& totals, const EventRecord& event) {
  switch (event.type) {
    case EventType::backward:
      ++totals.backwards;
      break;
    case EventType::wrapper_forward:
      ++(event.armed.value_or(false) ? totals.armed_forwards : totals.unarmed_forwards);
      break;
    case EventType::optimizer_step:
      ++totals.optimizer_steps;
      break;
    case EventType::collective:
      ++totals.collectives;
      totals.collective_bytes += static_cast<std::int64_t>(event.bytes);
      break;
    default:
      break;
  }
}

struct MicroEvents {
  bool bare_forward = false;
  bool armed_forward = false;
  bool armed_backward = false;
};

using MicroKey = std::pair<Moment, std::string>;

std::map<MicroKey, MicroEvents> by_micro_step(const RankEvidence& rank) {
  std::map<MicroKey, MicroEvents> micros;
  for (const EventRecord& event : rank.events) {
    MicroEvents& micro = micros[{{event.step, event.micro}, event.model}];
    const bool armed = event.armed.value_or(false);
    micro.bare_forward |= event.type == EventType::inner_forward && event.grad_mode.value_or(false);
    micro.armed_forward |= event.type == EventType::wrapper_forward && armed;
    micro.armed_backward |= event.type == EventType::backward && armed;
  }
  return micros;
}

}  // namespace

BackwardCounts count_backwards(const EvidenceTable& table, std::string_view model) {
  for (int rank = 0; rank < table.world_size(); ++rank) {
    if (runs_backward(table.rank(rank), model)) return count_rank(table.rank(rank), model);
  }
  return {};
}

EventTotals count_events(const EvidenceTable& table) {
  EventTotals totals;
  for (const EventRecord& event : table.rank(0).events) count_event(totals, event);
  return totals;
}

void find_stray_arms(const Context& context, FindingSet& findings) {
  for (int rank = 0; rank < context.table().world_size(); ++rank) {
    for (const auto& [key, micro] : by_micro_step(context.table().rank(rank))) {
      if (!(micro.bare_forward && micro.armed_forward && micro.armed_backward)) continue;
      findings.add({212, key.second, "", key.first.step, {rank}, ""});
    }
  }
}

}  // namespace gradcheck
