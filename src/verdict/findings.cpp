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
  Finding finding = finding_of(code, "");
  finding.model = model;
  return finding;
}

// What to do next depends on what was not judged: the first entry that occurs in the message wins.
struct Next {
  std::string_view part;  // of the message
  std::string_view hint;
};
constexpr Next kNextSteps[] = {
    {"cleared between", "Call zero_grad before the backward or after the step, not between them."},
    {"of the only step", "Check more than one step."},
    {"changed between two optimizers", "Step one optimizer with each parameter, or edit earlier."},
    {"changed between", "Look at what the program does to gradients between backward and step."},
    {"which this version does not judge yet", "Run the same step with DistributedDataParallel."},
    {"no wrapper that was seen holds", "Give the tensors to a wrapper and a torch optimizer."},
    {"rewritten by", "Let every rank's hook do the same, or declare the tensors in the plan."},
    {"made at other weights", "Keep the weights equal on all ranks until the backward is through."},
    {"every step was skipped", "Run until the gradient scaler stops skipping steps."},
    {"neither the mean nor the sum", "Declare with --plan how the gradients are reduced."},
    {"different wrappers", "Wrap the model alike on every rank."},
    {"different groups", "Create process groups with the same ranks in the same order everywhere."},
    {"the plan's groups leave out", "Declare with --plan over which ranks each model is reduced."},
    {"process group came after", "Call init_process_group before anything is trained."},
    {"stepped inside a backward",
     "Step the optimizer after the backward, at least while checking."},
    {"several threads", "Run all backwards in one thread while checking."},
    {"after the last optimizer step that was seen",
     "Step with a torch optimizer, or end the job after its last step."},
    {"no optimizer step seen", "Step with a torch optimizer, whose hooks can be seen."},
    {"outside of modules", "Put loose parameters into one module or one optimizer."},
    {"is incomplete on", "Look at what the named ranks did in that step; -v lists agent errors."},
    {"is reduced apart over",
     "Give the wrapper the group of all data-parallel ranks, if these are replicas."},
    {"reduction not judged", "Use --keep or --exact for more evidence, or more tensors and steps."},
    {"none of its tensors was recorded", "Look for agent errors among the notes; -v shows all."},
    {"one rank's dump alone", "Give the dumps of all ranks, or another run's with --reference."},
    {"the files hold no tensor", "Look at what wrote the files."},
    {"not recorded at `reduced`", "Dump the named tensors after the reduction too."},
    {"not recorded at",
     "Look for agent errors among the notes, and what the named ranks left out."},
};

std::string_view next_after(std::string_view message, std::string_view usual) {
  const auto* found = std::find_if(
      std::begin(kNextSteps), std::end(kNextSteps),
      [&](const Next& next) { return message.find(next.part) != std::string_view::npos; });
  return found == std::end(kNextSteps) ? usual : found->hint;
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
    if (finding.code == 604) finding.hint = next_after(finding.message, finding.hint);
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
