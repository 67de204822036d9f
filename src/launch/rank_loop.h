// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/clock.h"
#include "launch/line_buffer.h"
#include "launch/zygote.h"
#include "model/record.h"

namespace gradcheck {

// Called from RankLoop::turn on the caller's thread.
struct RankEvents {
  std::function<void(int rank, std::string_view line)> line;
  std::function<void(int rank, std::string_view rest)>
      closed;  // channel ended; text after the last newline
  std::function<void(const ExitPacket&)> exited;
};

// Moves bytes between the front and the forked ranks of one arm: evidence lines, stderr, exits.
// Owns the ranks' descriptors. Knows nothing of what the lines mean and keeps no deadline.
class RankLoop {
 public:
  RankLoop(Zygote& zygote, int ranks, RankEvents events);

  // Waits for something to happen, `until` at most, and handles what is there. `interrupt` is a
  // descriptor that ends the wait when it becomes readable (−1: none); returns true if it did.
  bool turn(Clock::time_point until, int interrupt);

  // Sends one control line. A rank that has gone is not an error: its end is seen elsewhere.
  void send(int rank, const std::string& line);
  void kill(int rank);  // SIGKILL, if it still runs

  bool all_exited() const;  // every process reaped
  bool all_ended() const;   // and every channel and stderr drained
  bool has_exited(int rank) const { return ranks_[static_cast<std::size_t>(rank)].exited; }
  // Last lines written to stderr, at most 4 KiB.
  const std::string& errors(int rank) const {
    return ranks_[static_cast<std::size_t>(rank)].stderr_tail;
  }

 private:
  struct RankState {
    std::int64_t pid = 0;
    Descriptor channel;
    Descriptor errors;
    LineBuffer lines{kMaxLineBytes};
    std::string stderr_tail;
    bool exited = false;
  };

  void read_channel(int rank);
  void read_errors(RankState& state);
  void read_exits();

  Zygote& zygote_;
  RankEvents events_;
  std::vector<RankState> ranks_;
};

}  // namespace gradcheck
