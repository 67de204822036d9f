// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"

#include <cstdio>
#include <exception>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "model/errors.h"
#include "run/interrupt.h"

namespace gradcheck {
namespace {

ExitCode dispatch(const std::vector<std::string>& argv, const Host& host) {
  const CommandLine line = parse_command_line({argv.begin() + 1, argv.end()});
  switch (line.command) {
    case Command::run:
      return run_command(line, argv, host);
    case Command::exec:
      return exec_command(line, argv, host);
    case Command::judge:
      return judge_command(line, argv, host);
    case Command::plan:
      return plan_command(line);
    case Command::logp:
      return logp_command(line, argv, host);
    case Command::compare:
      return compare_command(line, argv, host);
    case Command::list:
      return list_command(line, host);
    case Command::validate:
      return validate_command(line, host);
    case Command::report:
      return report_command(line, host);
    case Command::explain:
      return explain_command(line);
    case Command::version:
      return version_command();
    case Command::help:
      print(line.help_text);
      return ExitCode::passed;
  }
  return ExitCode::usage;
}

int complain(const std::exception& error, ExitCode code) {
  std::fprintf(stderr, "gradcheck: %s\n", error.what());
  return static_cast<int>(code);
}

}  // namespace

void print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    throw InfrastructureError("cannot write to standard output");
  }
}

int run_cli(const std::vector<std::string>& argv, const Host& host) {
  try {
    return static_cast<int>(dispatch(argv, host));
  } catch (const UsageError& error) {
    return complain(error, ExitCode::usage);
  } catch (const ScenarioError& error) {
    return complain(error, ExitCode::usage);
  } catch (const Interrupted& interrupted) {
    return 128 + interrupted.signal;
  } catch (const std::exception& error) {
    return complain(error, ExitCode::could_not_judge);
  }
}

}  // namespace gradcheck
