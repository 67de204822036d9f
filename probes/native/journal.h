// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "evidence/write/channel.h"
#include "model/record.h"

namespace gradcheck::native {

// Names under which the lab records the models it trains.
inline constexpr const char* kPolicy = "policy";
inline constexpr const char* kCritic = "critic";

// What a rank writes down, and where in the run it is: events that are sent without a step and
// micro get the current ones. Everything is sent from the rank's main thread; backward runs there
// too, because all tensors are on the CPU. Does not own the channel.
class Journal {
 public:
  explicit Journal(Channel& channel) : channel_(channel) {}

  void move_to(std::int64_t step, std::int64_t micro);
  // Announces a part of the rank's life and flushes, so that a rank that hangs has named it.
  void enter(std::string phase);
  void event(EventRecord record);
  template <typename Record>
  void send(const Record& record) {
    channel_.send(record);
  }
  void flush() { channel_.flush(); }

  std::int64_t step() const { return step_; }
  std::int64_t micro() const { return micro_; }
  const std::string& phase() const { return phase_; }

 private:
  Channel& channel_;
  std::int64_t step_ = 0;
  std::int64_t micro_ = 0;
  std::string phase_;
};

}  // namespace gradcheck::native
