// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "cli/output.h"
#include "run/logp_runner.h"

namespace gradcheck {

ExitCode logp_command(const CommandLine& line, const std::vector<std::string>& argv,
                      const Host& host) {
  LogpOptions options;
  options.files = line.log_prob_files;
  options.conditions = line.log_prob_conditions;
  options.fail_on = line.fail_on;
  options.argv = argv;
  options.tool_version = GRADCHECK_VERSION;
  FanOut reports = open_reports(line.format, line.reports, console_options(line, host));
  const Report report = run_logp(options, host, reports);
  return exit_code(report.summary.exit_code, reports);
}

}  // namespace gradcheck
