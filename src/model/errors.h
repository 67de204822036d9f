// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdexcept>
#include <string>

namespace gradcheck {

// The command line cannot be understood; nothing was run. Exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A scenario file is wrong; nothing was run. Exit code 2. what() reads "FILE: POINTER: message",
// with the JSON pointer of the offending value (empty for the whole document).
class ScenarioError : public std::runtime_error {
 public:
  ScenarioError(const std::string& file, const std::string& pointer, const std::string& message)
      : std::runtime_error(file + ": " + (pointer.empty() ? "" : pointer + ": ") + message) {}
};

// The tool could not do its work (spawn, rendezvous, broken channel, unreadable file). Exit code 3.
// The message names what failed, where (rank, phase, path) and what to do next.
class InfrastructureError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace gradcheck
