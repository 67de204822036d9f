// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <map>
#include <string>

#include "probes/native/packet_socket.h"

namespace gradcheck::native {

// The process that has LibTorch loaded and forks ranks from it (design.md §3). It runs no operator
// and starts no thread: a fork after either leaves the child with broken thread pools. Speaks
// model/zygote.h over `control`, one packet a message. A rank's exit is reported once; when the
// front closes the socket all ranks are killed.
class Zygote {
 public:
  // Takes SIGCHLD for itself. Errors: InfrastructureError.
  explicit Zygote(int control);
  ~Zygote();
  Zygote(const Zygote&) = delete;
  Zygote& operator=(const Zygote&) = delete;

  void serve();  // until the front has gone

 private:
  bool on_packet();  // false: the front has gone
  ZygotePacket fork_ranks(const Received& received);
  RefusedPacket abandon(const StartedPacket& started, const std::string& why);
  bool reap();
  void kill_ranks();

  int control_;
  int child_signals_;
  std::map<pid_t, int> ranks_;  // rank of each living child
};

}  // namespace gradcheck::native
