// SPDX-License-Identifier: Apache-2.0
#include "probes/native/journal.h"

#include <utility>

namespace gradcheck::native {

void Journal::move_to(std::int64_t step, std::int64_t micro) {
  step_ = step;
  micro_ = micro;
}

void Journal::enter(std::string phase) {
  phase_ = std::move(phase);
  EventRecord record;
  record.type = EventType::phase;
  record.phase = phase_;
  event(std::move(record));
  flush();
}

void Journal::event(EventRecord record) {
  record.step = step_;
  record.micro = micro_;
  channel_.send(record);
}

}  // namespace gradcheck::native
