// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "reports/page.h"
#include "reports/reporter.h"
#include "reports/sink.h"

namespace gradcheck {

// One format that --format and --report know.
struct ReporterInfo {
  std::string_view name;
  std::string_view extension;  // usual file ending, with its dot
  std::string_view summary;    // one clause for --help
  std::unique_ptr<Reporter> (*make)(Sink sink, const ConsoleOptions& options);
};

std::span<const ReporterInfo> all_reporters();  // the one table; console first
const ReporterInfo* find_reporter(std::string_view name);
std::string reporter_names();  // "console, json, junit, markdown"

}  // namespace gradcheck
