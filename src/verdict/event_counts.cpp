// SPDX-License-Identifier: Apache-2.0
#include "verdict/event_counts.h"

#include <algorithm>
#include <map>

#include "verdict/backwards.h"

namespace gradcheck {
namespace {

void count_backward(BackwardCounts& counts, const BackwardFacts& backward) {
  const bool escaped = backward.arming == Arming::bare;
  const bool first_escape = escaped && counts.outside_no_sync == counts.armed;
  ++counts.all;
  counts.outside_no_sync += backward.arming != Arming::no_sync;
  counts.armed += backward.arming == Arming::armed;
  if (counts.site.empty() || first_escape) counts.site = backward.event->site;
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
    // One before it arms nothing any more: its graph may be long gone (a saliency map, a log).
    micro.bare_forward |= micro.armed_forward && event.type == EventType::inner_forward &&
                          event.grad_mode.value_or(false);
    micro.armed_forward |= event.type == EventType::wrapper_forward && armed;
    micro.armed_backward |= event.type == EventType::backward && armed;
  }
  return micros;
}

}  // namespace

// Whether the last backward before a step ran under no_sync decides what the optimizer got.
BackwardCounts count_backwards(const Context& context, std::string_view model,
                               const std::set<Moment>& within) {
  for (const int rank : every_rank(context.table().world_size())) {
    const auto backwards = read_backwards(context.table().rank(rank), model, context.input.native);
    if (backwards.empty()) continue;
    BackwardCounts counts;
    const auto id = context.table().find_text(model);
    for (std::size_t i = 0; i < backwards.size(); ++i) {
      const Moment moment = backwards[i].moment;
      if (!within.empty() && !within.contains(moment)) continue;
      count_backward(counts, backwards[i]);
      const bool last = i + 1 == backwards.size() || backwards[i + 1].moment.step != moment.step;
      const StepFacts* step = id ? find_step(context.facts, *id, moment.step) : nullptr;
      counts.last_under_no_sync |=
          last && backwards[i].arming == Arming::no_sync && step != nullptr && step->is_taken();
    }
    return counts;
  }
  return {};
}

std::uint64_t count_armed_forwards(const EvidenceTable& table, std::string_view model) {
  const auto& events = table.rank(0).events;
  return static_cast<std::uint64_t>(
      std::count_if(events.begin(), events.end(), [&](const EventRecord& event) {
        return event.type == EventType::wrapper_forward && event.armed.value_or(false) &&
               concerns(event, model);
      }));
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
