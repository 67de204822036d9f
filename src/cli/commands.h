// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "model/outcome.h"
#include "run/host.h"

namespace gradcheck {

// One function a command. Each returns the exit code and throws UsageError, ScenarioError,
// InfrastructureError or Interrupted. `argv` is the whole command line, for the report.

ExitCode run_command(const CommandLine& line, const std::vector<std::string>& argv,
                     const Host& host);
ExitCode exec_command(const CommandLine& line, const std::vector<std::string>& argv,
                      const Host& host);
ExitCode judge_command(const CommandLine& line, const std::vector<std::string>& argv,
                       const Host& host);
ExitCode logp_command(const CommandLine& line, const std::vector<std::string>& argv,
                      const Host& host);
ExitCode compare_command(const CommandLine& line, const std::vector<std::string>& argv,
                         const Host& host);
ExitCode plan_command(const CommandLine& line);
ExitCode list_command(const CommandLine& line, const Host& host);
ExitCode validate_command(const CommandLine& line, const Host& host);
ExitCode report_command(const CommandLine& line, const Host& host);
ExitCode explain_command(const CommandLine& line);
ExitCode version_command();

// Folder of the scenarios: --scenario-dir, GRADCHECK_SCENARIOS, the installed folder beside the
// program, the source tree.
std::string scenario_directory(const CommandLine& line, const Host& host);

// Standard output, for the commands whose text is not a report.
void print(const std::string& text);

}  // namespace gradcheck
