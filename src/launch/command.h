// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "launch/descriptor.h"

namespace gradcheck {

// A user's command, to be started as it is.
struct CommandSpec {
  std::vector<std::string> argv;                                 // argv[0] is looked up on PATH
  std::vector<std::pair<std::string, std::string>> environment;  // set on top of ours
  std::string directory;                                         // working directory; empty: ours
  bool pipe_output = false;    // stdout and stderr come to us; otherwise they are ours
  bool pipe_errors = false;    // stderr alone comes to us
  bool out_to_errors = false;  // without pipes: stdout goes where stderr goes
  bool close_input = false;    // stdin is /dev/null; otherwise ours
};

// A command that runs. The caller reaps it.
struct StartedCommand {
  pid_t pid = -1;
  Descriptor handle;  // pidfd: readable once the process has ended
  Descriptor out;     // with pipe_output only
  Descriptor errors;  // and with pipe_errors
};

// Starts the command from the calling (main) thread. It dies with this process (PR_SET_PDEATHSIG)
// and starts with default signal handling.
// Errors: InfrastructureError, such as "cannot start pyhton: No such file or directory".
StartedCommand start_command(const CommandSpec& spec);

}  // namespace gradcheck
