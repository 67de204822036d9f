// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "cli/commands.h"
#include "cli/output.h"
#include "model/errors.h"
#include "model/json/report.h"
#include "reports/requests.h"

namespace gradcheck {
namespace {

// Reads no more than the decoder would take, and never from something endless.
std::string text_of(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw UsageError("cannot read " + path + ": not a file");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UsageError("cannot read " + path + ": " + std::strerror(errno));
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > kMaxReportBytes) throw UsageError("cannot read " + path + ": too large");
  std::string text(static_cast<std::size_t>(size), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
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
