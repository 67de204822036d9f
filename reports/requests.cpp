// SPDX-License-Identifier: Apache-2.0
#include "reports/requests.h"

#include <filesystem>
#include <set>
#include <vector>

#include "model/errors.h"
#include "model/nearest.h"
#include "reports/registry.h"

namespace gradcheck {
namespace {

constexpr std::string_view kStdout = "-";

const ReporterInfo& reporter_or_refuse(std::string_view name) {
  if (const ReporterInfo* info = find_reporter(name)) return *info;
  std::vector<std::string_view> names;
  for (const ReporterInfo& info : all_reporters()) names.push_back(info.name);
  throw UsageError("no report format '" + std::string(name) + "'" + did_you_mean(name, names) +
                   "; there are " + reporter_names());
}

// One file under two spellings would be written twice.
std::string canonical(const std::string& path) {
  std::error_code error;
  const auto resolved =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  return path == kStdout || error ? path : resolved.string();
}

void refuse_repeats(std::string_view format, std::span<const ReportRequest> requests) {
  std::set<std::string> paths;
  for (const ReportRequest& request : requests) {
    if (paths.insert(canonical(request.path)).second) continue;
    throw UsageError(request.path == kStdout ? "only one report can go to stdout"
                                             : "two reports would go to " + request.path);
  }
  if (paths.contains(std::string(kStdout)) && format != "console") {
    throw UsageError("only one report can go to stdout: give --format or --report FORMAT=-");
  }
}

}  // namespace

ReportRequest request_from_text(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos || equals + 1 == text.size()) {
    throw UsageError("--report wants FORMAT=PATH, not '" + std::string(text) + "'");
  }
  reporter_or_refuse(text.substr(0, equals));
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

FanOut open_reports(std::string_view format, std::span<const ReportRequest> requests,
                    const ConsoleOptions& options, int stdout_descriptor) {
  refuse_repeats(format, requests);
  ConsoleOptions plain = options;
  plain.colour = false;
  FanOut reports;
  for (const ReportRequest& request : requests) {
    const ReporterInfo& info = reporter_or_refuse(request.format);
    if (request.path == kStdout) {
      format = info.name;
    } else {
      reports.add(info.make(Sink::to_file(request.path), plain));
    }
  }
  const ReporterInfo& info = reporter_or_refuse(format);
  reports.add(info.make(Sink::to_descriptor(stdout_descriptor, "stdout"), options));
  return reports;
}

}  // namespace gradcheck
