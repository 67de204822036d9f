// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/clock.h"
#include "launch/command.h"
#include "launch/line_buffer.h"

namespace gradcheck {

enum class Stream : std::uint8_t { out, errors };

struct CommandExit {
  int process = 0;
  int status = 0;  // exit status; 0 of one that died by a signal
  int signal = 0;
};

// Called from JobLoop::turn on the caller's thread.
struct JobEvents {
  std::function<void(int connection, std::string_view line)> line;
  std::function<void(int connection, std::string_view rest)> closed;
  std::function<void(int process, Stream stream, std::string_view line)> output;
  std::function<void(const CommandExit&)> exited;
};

// Moves bytes between the front and a user's job: ranks announce themselves on a Unix socket, the
// commands that the front started write to their pipes and end. Knows nothing of what lines mean
// and keeps no deadline. Processes and connections count from 0 in the order of their start.
class JobLoop {
 public:
  // Listens at `socket_path` (at most 107 bytes, unix(7)). Errors: InfrastructureError.
  JobLoop(const std::string& socket_path, JobEvents events);

  int start(const CommandSpec& spec);  // its number; errors: InfrastructureError

  // Waits for something to happen, `until` at most, and handles what is there. Returns true if
  // `interrupt` became readable (−1: none).
  bool turn(Clock::time_point until, int interrupt);

  // Sends one control line without waiting. A rank that has gone, or that does not read, is not an
  // error.
  void send(int connection, const std::string& line);

  bool all_exited() const;  // every command that was started
  bool all_closed() const;  // every connection
  bool outputs_closed() const;
  bool is_open(int connection) const {
    return connections_[static_cast<std::size_t>(connection)].channel.is_open();
  }
  pid_t pid(int process) const { return processes_[static_cast<std::size_t>(process)].command.pid; }

 private:
  struct Connection {
    Descriptor channel;
    LineBuffer lines;
  };
  struct Process {
    StartedCommand command;
    LineBuffer out, errors;
    bool exited = false;
  };

  void accept_all();
  void read_connection(int number);
  void read_output(int number, Stream stream);
  void read_exit(int number);

  JobEvents events_;
  Descriptor listener_;
  std::vector<Connection> connections_;
  std::vector<Process> processes_;
};

}  // namespace gradcheck
