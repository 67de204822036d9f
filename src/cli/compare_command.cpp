// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "cli/output.h"
#include "run/compare_runner.h"

namespace gradcheck {

ExitCode compare_command(const CommandLine& line, const std::vector<std::string>& argv,
                         const Host& host) {
  CompareOptions options = line.compare;
  options.fail_on = line.fail_on;
  options.all_tensors = line.verbosity > 0;
  options.argv = argv;
  options.tool_version = GRADCHECK_VERSION;
  FanOut reports = open_reports(line.format, line.reports, console_options(line, host));
  const Report report = run_compare(options, host, reports);
  return exit_code(report.summary.exit_code, reports);
}

}  // namespace gradcheck
