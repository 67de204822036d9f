// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <algorithm>
#include <cstdio>

namespace gradcheck {
namespace {

ColourChoice choice_from(const std::string& word) {
  if (word == "always") return ColourChoice::always;
  return word == "never" ? ColourChoice::never : ColourChoice::automatic;
}

}  // namespace

ConsoleOptions console_options(const CommandLine& line, const Host& host) {
  ConsoleOptions options;
  const ColourEnvironment environment{host.env("NO_COLOR"), host.env("FORCE_COLOR"),
                                      host.env("CLICOLOR_FORCE"), host.env("TERM")};
  options.colour = use_colour(choice_from(line.color), environment, host.stdout_is_terminal);
  options.quiet = line.quiet;
  options.verbosity = line.quiet ? 0 : line.verbosity;
  if (host.stdout_columns > 0) {
    options.width = std::clamp<std::size_t>(static_cast<std::size_t>(host.stdout_columns), 80, 200);
  }
  return options;
}

ExitCode exit_code(int code, const FanOut& reports) {
  for (const std::string& error : reports.errors()) {
    std::fprintf(stderr, "gradcheck: %s\n", error.c_str());
  }
  const auto run = static_cast<ExitCode>(code);
  const bool lost = !reports.errors().empty();
  return lost && run != ExitCode::failed ? ExitCode::could_not_judge : run;
}

}  // namespace gradcheck
