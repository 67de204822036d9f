// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "launch/descriptor.h"
#include "model/zygote.h"

namespace gradcheck {

// The ranks of one arm as the front holds them: its ends of their channels and stderr pipes. Index
// is the rank.
struct ForkedRanks {
  std::vector<std::int64_t> pids;
  std::vector<Descriptor> channels;
  std::vector<Descriptor> errors;
};

// The front's handle of `gradcheck-rank --zygote`: a process that has loaded LibTorch once and
// forks fresh ranks for each arm (design.md §3). When this object goes, or the front dies, the
// control socket closes and the zygote kills its ranks and ends.
// Main thread only. Errors: InfrastructureError with the zygote's last words.
class Zygote {
 public:
  // Starts `binary` and waits until LibTorch is loaded, `spawn_timeout_s` at most. Waiting ends
  // with an error as soon as `interrupt` is readable (−1: none).
  Zygote(const std::string& binary, double spawn_timeout_s, int interrupt);
  ~Zygote();
  Zygote(const Zygote&) = delete;
  Zygote& operator=(const Zygote&) = delete;

  const ReadyPacket& ready() const { return ready_; }
  pid_t pid() const { return pid_; }
  int control() const { return control_.get(); }  // readable when an exit can be received

  ForkedRanks fork_ranks(int ranks);
  // Next `exit` if one is there.
  std::optional<ExitPacket> take_exit();

 private:
  void start(const std::string& binary);
  void await_ready(const std::string& binary);
  void end();  // closes the control socket and reaps the process
  std::optional<ZygotePacket> receive(double timeout_s);
  std::string last_words() const;

  Descriptor control_;
  Descriptor log_;  // memory file that holds the zygote's own output
  pid_t pid_ = -1;
  double timeout_s_;
  int interrupt_;
  ReadyPacket ready_;
};

}  // namespace gradcheck
