// SPDX-License-Identifier: Apache-2.0
#include "verdict/backwards.h"

namespace gradcheck {
namespace {

Arming arming_of(const EventRecord& backward, bool held_back, bool native) {
  const bool armed = backward.armed.value_or(false);
  const bool no_sync = backward.no_sync.value_or(false);
  if (native) return no_sync ? Arming::no_sync : armed ? Arming::armed : Arming::bare;
  return armed ? Arming::armed : held_back ? Arming::no_sync : Arming::bare;
}

// A forward of the wrapper with gradients on that arms nothing.
bool holds_back(const EventRecord& event) {
  return event.type == EventType::wrapper_forward && event.grad_mode.value_or(true) &&
         !event.armed.value_or(true);
}

}  // namespace

std::vector<BackwardFacts> read_backwards(const RankEvidence& rank, std::string_view model,
                                          bool native) {
  std::vector<BackwardFacts> backwards;
  bool held_back = false;
  for (const EventRecord& event : rank.events) {
    const bool ours = event.type == EventType::wrapper_forward || event.type == EventType::backward;
    if (!ours || !concerns(event, model)) continue;
    held_back |= holds_back(event);
    if (event.type != EventType::backward) continue;
    backwards.push_back({{event.step, event.micro}, arming_of(event, held_back, native), &event});
    held_back = false;
  }
  return backwards;
}

}  // namespace gradcheck
