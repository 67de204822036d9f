// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "evidence/write/lines.h"

namespace gradcheck {

// A rank's end of the measuring channel: a stream socket that carries JSON lines both ways. Owns
// the descriptor. One thread at a time. Lines are buffered; flush() sends them.
// Errors: InfrastructureError when the front has gone.
class Channel {
 public:
  explicit Channel(int descriptor) : descriptor_(descriptor) {}
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  template <typename Record>
  void send(const Record& record) {
    append(to_line(record, sequence_));
  }
  // Fills in the number of lines sent before it, sends and flushes.
  void send_bye(int status);
  void flush();

  // Next line from the front, without the newline; waits at most `timeout_s`. nullopt when the
  // front closed the channel. Flushes first.
  std::optional<std::string> receive(double timeout_s);

 private:
  void append(const std::string& line);

  int descriptor_;
  std::uint64_t sequence_ = 0;
  std::string out_;
  std::string in_;
};

}  // namespace gradcheck
