// SPDX-License-Identifier: Apache-2.0
#include "cli/listing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "reports/text.h"

namespace gradcheck {
namespace {

constexpr std::size_t kIndent = 4;

std::string counts_of(const Expect& expect) {
  const std::string differed = expect.differed ? std::to_string(*expect.differed) : "?";
  std::string text = expect.of ? fmt::format("{}/{} differed", differed, *expect.of) : "";
  if (!expect.of && expect.differed) text = differed + " differed";
  if (expect.wrong.value_or(0) > 0) text += fmt::format(", {} wrong", *expect.wrong);
  return text;
}

// Differences and wrong values say it already.
bool goes_without_saying(const Expect& expect) {
  const bool bad = expect.differed.value_or(0) + expect.wrong.value_or(0) > 0;
  return expect.of && expect.outcome == (bad ? Outcome::inconsistent : Outcome::consistent);
}

std::string head_of(const Scenario& scenario, std::size_t width) {
  std::string ranks = fmt::format("{} rank{}", scenario.ranks, scenario.ranks == 1 ? "" : "s");
  std::string text = fmt::format("{:<{}}  {:<8}", scenario.name, width, ranks);
  if (!scenario.tags.empty()) text += fmt::format("  tags {}", fmt::join(scenario.tags, ", "));
  if (!scenario.needs.empty()) text += fmt::format("  needs {}", fmt::join(scenario.needs, ", "));
  while (text.ends_with(' ')) text.pop_back();
  return printable(text) + "\n";
}

void add_paragraph(std::string& text, const std::string& words, std::size_t columns) {
  const std::size_t width = columns > kIndent ? columns - kIndent : 0;
  for (const std::string& line : wrap(printable(words), width)) {
    text += std::string(kIndent, ' ') + line + "\n";
  }
}

std::string arms_of(const Scenario& scenario) {
  std::size_t width = 0;
  for (const Arm& arm : scenario.arms) width = std::max(width, arm.name.size());
  std::string text;
  for (const Arm& arm : scenario.arms) {
    const std::string ranks = arm.ranks ? fmt::format(" ({} rank)", *arm.ranks) : "";
    text += fmt::format("{:{}}{:<{}}  {}{}\n", "", kIndent, arm.name, width,
                        printable(demand_of(arm.expect)), ranks);
  }
  return text;
}

}  // namespace

std::string demand_of(const Expect& expect) {
  std::vector<std::string> parts;
  if (const std::string counts = counts_of(expect); !counts.empty()) parts.push_back(counts);
  if (!goes_without_saying(expect)) {
    parts.emplace_back(name_of(expect.outcome.value_or(Outcome::consistent)));
  }
  if (expect.raises && !expect.raises->text.empty()) {
    parts.push_back("\"" + shorten(expect.raises->text, 50) + "\"");
  }
  if (expect.as_reference) {
    parts.emplace_back(*expect.as_reference ? "the reference's weights" : "other weights");
  }
  std::vector<std::string> words = expect.codes;
  words.insert(words.end(), expect.causes.begin(), expect.causes.end());
  if (!words.empty()) parts.push_back(fmt::format("{}", fmt::join(words, " ")));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string listing_of(const std::vector<Scenario>& scenarios, SkipReasons& reasons,
                       std::size_t columns) {
  std::size_t width = 0, skipped = 0;
  for (const Scenario& scenario : scenarios) width = std::max(width, scenario.name.size());
  std::string text;
  for (const Scenario& scenario : scenarios) {
    const std::string reason = reasons.of(scenario);
    text += (text.empty() ? "" : "\n") + head_of(scenario, width);
    add_paragraph(text, scenario.description, columns);
    text += arms_of(scenario);
    if (!reason.empty()) add_paragraph(text, "skipped here: " + reason, columns);
    skipped += !reason.empty();
  }
  text += fmt::format("\n{} scenario{}", scenarios.size(), scenarios.size() == 1 ? "" : "s");
  return text + (skipped > 0 ? fmt::format(", {} skipped here", skipped) : "") + "\n";
}

}  // namespace gradcheck
