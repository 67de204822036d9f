// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/support/healthy_log_probs.h"
#include "tests/support/misplaced_log_probs.h"
#include "verdict/logp/judge.h"

namespace gradcheck {
namespace {

const std::string kPage = std::string(GRADCHECK_SOURCE_DIR) + "/docs/logp.md";
constexpr std::string_view kBegin = "<!-- table: tests/verdict/logp/table_test.cpp -->\n";
constexpr std::string_view kEnd = "<!-- end of table -->";

std::string first_cause(const LogProbReading& reading) {
  if (reading.causes.empty()) return "";
  const CauseClaim& claim = reading.causes.front();
  return fmt::format("`{}` ({})", name_of(claim.cause), name_of(claim.confidence));
}

// The loudest: later ones are no louder.
std::string first_finding(const LogProbReading& reading) {
  if (reading.findings.empty()) return "";
  const Finding& finding = reading.findings.front();
  return fmt::format("{} {}", code_text(finding.code), name_of(finding.severity));
}

bool is_right(const toy::Case& made, const LogProbReading& reading) {
  if (reading.outcome != made.outcome) return false;
  if (made.cause) return !reading.causes.empty() && reading.causes.front().cause == *made.cause;
  return reading.findings.empty() || reading.findings.front().severity == Severity::note;
}

std::string row_of(const toy::Case& made) {
  const LogProbReading reading = judge_log_probs(made.make(), made.conditions);
  const LogProbStatistics& s = reading.statistics;
  const bool judged = reading.counts.compared > 0;
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", made.name, made.about,
                     judged ? fmt::format("{:.2g}", s.mean) : "",
                     judged ? fmt::format("{:.2g}", s.mean_abs) : "", name_of(reading.outcome),
                     first_finding(reading), first_cause(reading),
                     is_right(made, reading) ? "right" : "**wrong**");
}

std::string table() {
  std::string text =
      "| dump | what is in it | mean Δ | mean \\|Δ\\| | outcome | first finding | first cause | "
      "call |\n"
      "|---|---|---:|---:|---|---|---|---|\n";
  for (const toy::Case& made : toy::broken_cases()) text += row_of(made);
  for (const toy::Case& made : toy::healthy_cases()) text += row_of(made);
  return text;
}

std::string page() {
  std::ifstream file(kPage);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(LogProbTable, IsWhatTheJudgeSays) {
  const std::string text = page();
  const std::size_t begin = text.find(kBegin) + kBegin.size();
  const std::size_t end = text.find(kEnd);
  ASSERT_LT(begin, text.size());
  ASSERT_LE(begin, end);
  const std::string made = table();
  if (std::getenv("GRADCHECK_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(kPage) << text.substr(0, begin) << made << text.substr(end);
    return;
  }
  EXPECT_EQ(text.substr(begin, end - begin), made);
}

}  // namespace
}  // namespace gradcheck
