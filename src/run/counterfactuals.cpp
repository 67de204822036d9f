// SPDX-License-Identifier: Apache-2.0
#include "run/counterfactuals.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace gradcheck {
namespace {

ArmReport* find_arm(ScenarioReport& report, const std::string& name) {
  const auto found = std::ranges::find(report.arms, name, &ArmReport::name);
  return found == report.arms.end() ? nullptr : &*found;
}

const LogProbArm* find_same(const ArmReport& arm, const LogProbArm& wanted) {
  const auto found = std::ranges::find_if(arm.logp, [&](const LogProbArm& judged) {
    return judged.step == wanted.step && judged.name == wanted.name;
  });
  return found == arm.logp.end() ? nullptr : &*found;
}

std::string fall_text(double before, double after) {
  return fmt::format("max |Δ| {:.2g} → {:.2g}", before, after);
}

// What is left over stays visible: all of it is claimed only where nothing is.
std::string share_text(double before, double after) {
  if (after == 0 && before > 0) return "explains all of it";
  if (after == before) return "changes nothing";
  if (!(after < before)) return "does not explain it";
  return fmt::format("explains {:.0f} %", std::min(99.0, 100 * (1 - after / before)));
}

void tell_pair(ArmReport& changed, ArmReport& reference) {
  for (const LogProbArm& before : reference.logp) {
    const LogProbArm* after = find_same(changed, before);
    if (after == nullptr) continue;
    const LogProbStatistics& old = before.reading.statistics;
    const LogProbStatistics& now = after->reading.statistics;
    reference.notes.push_back(fmt::format("{}: {}, mean |Δ| {:.2g} → {:.2g}: {}", changed.name,
                                          fall_text(old.max_abs, now.max_abs), old.mean_abs,
                                          now.mean_abs, share_text(old.mean_abs, now.mean_abs)));
    changed.headline +=
        fmt::format("; {} against {}", fall_text(old.max_abs, now.max_abs), reference.name);
    return;  // later steps differ in their weights too
  }
}

}  // namespace

void tell_counterfactuals(const Scenario& scenario, ScenarioReport& report) {
  for (const Arm& arm : scenario.arms) {
    ArmReport* changed = find_arm(report, arm.name);
    ArmReport* reference = arm.reference.empty() ? nullptr : find_arm(report, arm.reference);
    if (changed != nullptr && reference != nullptr) tell_pair(*changed, *reference);
  }
}

}  // namespace gradcheck
