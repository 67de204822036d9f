// SPDX-License-Identifier: Apache-2.0
#include "scenario/overrides.h"

#include <algorithm>

#include "model/errors.h"
#include "model/expectation.h"
#include "model/native_parts.h"
#include "model/nearest.h"

namespace gradcheck {
namespace {

constexpr std::int64_t kMaxSteps = 1'000'000;
constexpr std::uint64_t kMaxSeed = std::uint64_t{1} << 53;  // exact in any JSON reader

void require(bool right, const std::string& message) {
  if (!right) throw UsageError(message);
}

void require_part(const std::string& option, const std::optional<std::string>& name,
                  std::span<const NativePart> parts) {
  if (!name || contains(parts, *name)) return;
  std::vector<std::string_view> known;
  for (const NativePart& part : parts) known.push_back(part.name);
  throw UsageError(option + ": there is no '" + *name + "'" + did_you_mean(*name, known));
}

void refuse_bad_values(const Overrides& overrides) {
  const int ranks = overrides.ranks.value_or(1);
  const double timeout_s = overrides.timeout_s.value_or(1);
  require(ranks >= 1 && ranks <= kMaxRanks,
          "--ranks: must be from 1 to " + std::to_string(kMaxRanks));
  require(overrides.steps.value_or(1) >= 1 && overrides.steps.value_or(1) <= kMaxSteps,
          "--steps: must be from 1 to " + std::to_string(kMaxSteps));
  require(overrides.seed.value_or(0) <= kMaxSeed, "--seed: must be at most 2^53");
  require(timeout_s > 0 && timeout_s <= 86400,
          "--timeout: must be more than 0 and at most 86400 seconds");
  require_part("--backend", overrides.backend, native_backends());
  require_part("--dtype", overrides.dtype, native_dtypes());
}

void set_program(Arm& arm, const Overrides& overrides, const std::string& scenario) {
  const bool changes = overrides.backend || overrides.dtype;
  require(arm.program.native || !changes,
          "scenario '" + scenario + "' runs a command: --dtype and --backend do not apply");
  if (overrides.backend) arm.program.native->backend = *overrides.backend;
  if (overrides.dtype) arm.program.native->dtype = *overrides.dtype;
}

// Rewrites the value of `key` between the brackets of a matrix name, if it stands there.
void relabel(std::string& name, const std::string& key, const std::string& value) {
  for (const char before : {'[', ','}) {
    const std::size_t label = name.find(before + key + "=");
    if (label == std::string::npos) continue;
    const std::size_t start = label + key.size() + 2;
    name.replace(start, name.find_first_of(",]", start) - start, value);
  }
}

void relabel_all(std::string& name, const Overrides& overrides) {
  if (overrides.ranks) relabel(name, "ranks", std::to_string(*overrides.ranks));
  if (overrides.steps) relabel(name, "steps", std::to_string(*overrides.steps));
  if (overrides.seed) relabel(name, "seed", std::to_string(*overrides.seed));
  if (overrides.dtype) relabel(name, "dtype", *overrides.dtype);
}

void refuse_misfits(const Scenario& scenario) {
  for (const Arm& arm : scenario.arms) {
    const std::string problem = misfit_of(arm, scenario.ranks, scenario.steps);
    require(problem.empty(),
            "scenario '" + scenario.name + "', arm '" + arm.name + "': " + problem);
  }
  for (const PlanRule& rule : scenario.plan) {
    const std::string problem = misfit_of(rule, scenario.ranks);
    require(problem.empty(), "scenario '" + scenario.name + "', plan: " + problem);
  }
}

const Arm& find_arm(const Scenario& scenario, const std::string& name) {
  std::vector<std::string> known;
  for (const Arm& arm : scenario.arms) {
    if (arm.name == name) return arm;
    known.push_back(arm.name);
  }
  throw UsageError("scenario '" + scenario.name + "' has no arm '" + name + "'" +
                   did_you_mean(name, known));
}

}  // namespace

Scenario apply_overrides(Scenario scenario, const Overrides& overrides) {
  refuse_bad_values(overrides);
  for (Arm& arm : scenario.arms) set_program(arm, overrides, scenario.name);
  scenario.ranks = overrides.ranks.value_or(scenario.ranks);
  scenario.steps = overrides.steps.value_or(scenario.steps);
  scenario.seed = overrides.seed.value_or(scenario.seed);
  scenario.timeout_s = overrides.timeout_s.value_or(scenario.timeout_s);
  relabel_all(scenario.name, overrides);
  refuse_misfits(scenario);
  return scenario;
}

std::vector<Scenario> apply_overrides(const std::vector<Scenario>& scenarios,
                                      const Overrides& overrides) {
  std::vector<Scenario> changed;
  for (const Scenario& scenario : scenarios) {
    Scenario one = apply_overrides(scenario, overrides);
    const bool there = std::ranges::find(changed, one.name, &Scenario::name) != changed.end();
    if (!there) changed.push_back(std::move(one));
  }
  return changed;
}

bool select_arms(Scenario& scenario, const std::vector<std::string>& names) {
  if (names.empty()) return false;
  std::vector<std::string> kept = names;
  for (std::size_t i = 0; i < kept.size(); ++i) {  // grows by references
    const std::string reference = find_arm(scenario, kept[i]).reference;
    const bool is_new = std::ranges::find(kept, reference) == kept.end();
    if (!reference.empty() && is_new) kept.push_back(reference);
  }
  const auto unwanted = [&kept](const Arm& arm) {
    return std::ranges::find(kept, arm.name) == kept.end();
  };
  return std::erase_if(scenario.arms, unwanted) > 0;
}

}  // namespace gradcheck
