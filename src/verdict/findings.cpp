// SPDX-License-Identifier: Apache-2.0
#include "verdict/findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gradcheck {
namespace {

void merge_ranks(std::vector<int>& into, const std::vector<int>& ranks) {
  into.insert(into.end(), ranks.begin(), ranks.end());
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

Finding blank(int code, std::string_view model) {
  const CodeInfo& info = *find_code(code);
  Finding finding;
  finding.code = code;
  finding.severity = info.severity;
  finding.model = model;
  finding.hint = info.hint;
  return finding;
}

bool comes_first(const Finding& a, const Finding& b) {
  if (a.severity != b.severity) return a.severity > b.severity;
  return std::tie(a.code, a.model) < std::tie(b.code, b.model);
}

}  // namespace

void FindingSet::add(const Sighting& sighting) {
  const Key key{sighting.code, std::string(sighting.model), sighting.detail};
  const auto [at, is_new] = findings_.try_emplace(key, blank(sighting.code, sighting.model));
  Finding& finding = at->second;
  finding.step = is_new ? sighting.step : std::min(finding.step, sighting.step);
  merge_ranks(finding.ranks, sighting.ranks);
  if (sighting.name.empty() || !seen_[key].insert(std::string(sighting.name)).second) return;
  ++finding.count;
  if (finding.names.size() < kFindingNames) finding.names.emplace_back(sighting.name);
}

void FindingSet::say(int code, const std::string& message, const std::vector<int>& ranks,
                     std::string_view model) {
  const Key key{code, std::string(model), message};
  Finding& finding = findings_.try_emplace(key, blank(code, model)).first->second;
  finding.message = message;
  merge_ranks(finding.ranks, ranks);
}

void FindingSet::soften(int code, std::string_view detail, Severity severity) {
  for (auto& [key, finding] : findings_) {
    if (std::get<0>(key) == code && std::get<2>(key) == detail) finding.severity = severity;
  }
}

bool FindingSet::has(int code) const {
  return std::any_of(findings_.begin(), findings_.end(),
                     [code](const auto& entry) { return std::get<0>(entry.first) == code; });
}

std::string FindingSet::message_of(const Key& key, const Finding& finding) const {
  const auto& [code, model, detail] = key;
  // The title of 604 speaks of everything; its detail says what is missing.
  if (code == 604 && finding.count == 0) return detail;
  if (code == 604) return fmt::format("{}: {}", detail, counted(finding.count, "tensor"));
  std::string message(find_code(code)->title);
  if (finding.count > 0) message += ": " + share_of_inventory(key, finding.count);
  return detail.empty() ? message : message + "; " + detail;
}

// Parameters and buffers are not counted against the inventory of gradients; a detail of 606 says
// that it speaks of something beside them.
std::string FindingSet::share_of_inventory(const Key& key, std::uint64_t count) const {
  const auto& [code, model, detail] = key;
  const bool beside = (code >= 300 && code < 600) || (code == 606 && !detail.empty());
  if (beside) return std::to_string(count);
  const auto& inventory = context_.facts.inventory;
  const std::string_view name = model;
  const auto of = std::count_if(inventory.begin(), inventory.end(), [&](const TensorId& tensor) {
    return context_.table().text(tensor.model) == name;
  });
  return fmt::format("{} of {}", count, of);
}

std::vector<Finding> FindingSet::take() {
  std::vector<Finding> findings;
  for (auto& [key, finding] : findings_) {
    if (finding.message.empty()) finding.message = message_of(key, finding);
    findings.push_back(std::move(finding));
  }
  std::stable_sort(findings.begin(), findings.end(), comes_first);
  return findings;
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string factor_text(double factor) { return fmt::format("{:.3g} ×", factor); }

}  // namespace gradcheck
