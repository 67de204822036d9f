// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "evidence/write/lines.h"

namespace gradcheck {

// A rank's end of the measuring channel: a stream socket that carries JSON lines both ways, or a
// file that lines are written to. Owns the descriptor. One thread at a time. Lines are buffered;
// flush() sends them.
// Errors: InfrastructureError when the front has gone or a file cannot be written. What the front
// has got then may end in the middle of a line, so the channel is of no more use.
class Channel {
 public:
  // A front that leaves bytes unread for `send_timeout_s` has gone; 0 waits for it for ever.
  explicit Channel(int descriptor, double send_timeout_s = 0);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  template <typename Record>
  void send(const Record& record) {
    append(to_line(record, sequence_));
  }
  // A record given as one JSON object without `seq`, which is put in. Requires: valid JSON with
  // `{` and `}` at its ends and no newline.
  void send_object(std::string_view json);
  // Fills in the number of lines sent before it, sends and flushes.
  void send_bye(int status);
  void flush();

  // Next line from the front, without the newline; waits at most `timeout_s`, longer is an error.
  // nullopt when the front closed the channel. Flushes first.
  std::optional<std::string> receive(double timeout_s);
  // The same for who does not depend on an answer: nullopt when no line came in time, at once
  // where lines go to a file; that the front has gone is an error.
  std::optional<std::string> poll(double timeout_s);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Arrival : std::uint8_t { bytes, nothing, gone };

  void append(const std::string& line);
  std::optional<std::string> take_line();
  Arrival read_more(Clock::time_point deadline);

  int descriptor_;
  bool is_socket_;
  double send_timeout_s_;
  std::uint64_t sequence_ = 0;
  std::string out_;
  std::string in_;
};

}  // namespace gradcheck
