// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace gradcheck {

// What the program knows of the machine it runs on. Passed in, so that tests are deterministic.
struct Host {
  std::function<std::int64_t()> unix_seconds;  // wall clock
  std::function<std::optional<std::string>(const std::string&)> env;
  std::function<std::string()> random_id;  // 16 hexadecimal digits
  std::string name;                        // of the machine
  std::string executable_directory;        // where this program lies
  std::string temporary_directory;
  bool stdout_is_terminal = false;
  bool stderr_is_terminal = false;
  int stdout_columns = 0;  // 0: not a terminal
};

// The machine as it is.
Host real_host();

}  // namespace gradcheck
