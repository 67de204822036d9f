// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "launch/command.h"

namespace gradcheck {

struct BriefResult {
  bool in_time = false;
  int status = 0;   // exit status; 128 + n where a signal ended it
  std::string out;  // standard output, at most 64 KiB
  std::string errors;
};

// Runs a command that should take a moment, ends it by SIGKILL when it takes longer, and returns
// what it said. Errors: InfrastructureError where it cannot be started.
BriefResult run_briefly(CommandSpec spec, double timeout_s);

}  // namespace gradcheck
