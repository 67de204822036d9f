// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "cli/commands.h"
#include "cli/output.h"
#include "model/errors.h"
#include "model/json/report.h"
#include "reports/requests.h"

namespace gradcheck {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UsageError("cannot read " + path + ": " + std::strerror(errno));
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

ExitCode report_command(const CommandLine& line, const Host& host) {
  const std::string& path = line.files.front();
  const Report report = report_from_json(text_of(path), path);
  FanOut reports = open_reports(line.format, line.reports, console_options(line, host));
  reports.run_started(report.run);
  for (const ScenarioReport& scenario : report.scenarios) reports.scenario_finished(scenario);
  reports.run_finished(report);
  return exit_code(static_cast<int>(ExitCode::passed), reports);  // rendering is not judging
}

}  // namespace gradcheck
