// SPDX-License-Identifier: Apache-2.0
#include "reports/registry.h"

#include <algorithm>
#include <utility>

#include "reports/console.h"
#include "reports/json.h"
#include "reports/junit.h"
#include "reports/markdown.h"
#include "reports/text_reporter.h"

namespace gradcheck {
namespace {

template <std::string (*kText)(const Report&)>
std::unique_ptr<Reporter> make_text(Sink sink, const ConsoleOptions&) {
  return make_text_reporter(std::move(sink), kText);
}

constexpr ReporterInfo kReporters[] = {
    {"console", ".txt", "for people: verdict first, then what is wrong and what to do",
     [](Sink sink, const ConsoleOptions& options) {
       return make_console_reporter(std::move(sink), options);
     }},
    {"json", ".json", "everything, schema report-1: for dashboards and `gradcheck report`",
     make_text<json_text>},
    {"junit", ".xml", "JUnit XML for Jenkins, GitLab and other test dashboards",
     make_text<junit_text>},
    {"markdown", ".md", "a page below 900 kB, for GITHUB_STEP_SUMMARY", make_text<markdown_text>},
};

}  // namespace

std::span<const ReporterInfo> all_reporters() { return kReporters; }

const ReporterInfo* find_reporter(std::string_view name) {
  const auto* found = std::find_if(std::begin(kReporters), std::end(kReporters),
                                   [name](const ReporterInfo& info) { return info.name == name; });
  return found == std::end(kReporters) ? nullptr : found;
}

std::string reporter_names() {
  std::string names;
  for (const ReporterInfo& info : kReporters) {
    if (!names.empty()) names += ", ";
    names += info.name;
  }
  return names;
}

}  // namespace gradcheck
