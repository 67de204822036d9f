// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

namespace gradcheck {

// What the agent in a job's process is told, in the environment variable GRADCHECK_JOB (schema
// "job-1"; probes/python/gradcheck/agent reads it).
struct JobVariables {
  std::string run;        // id that ranks repeat in `hello`
  std::string directory;  // run directory: payload/ lies in it, and the agent's seen-<pid> files
  std::string socket;     // the front's Unix socket; empty: evidence goes to files
  std::string evidence;   // folder for evidence files; empty: the socket
  std::string library;    // libgradcheck_capture.so
  std::int64_t every = 100;
  std::int64_t steps = 0;
  bool exact = false;
  std::uint64_t keep_bytes = 0;
};

std::string to_text(const JobVariables& job);

}  // namespace gradcheck
