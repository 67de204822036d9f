// SPDX-License-Identifier: Apache-2.0
#include "model/json/matrix.h"

#include <nlohmann/json.hpp>

namespace gradcheck {
namespace {

void set_dtype(Scenario& scenario, const Node& value) {
  const std::string dtype = value.one_of(native_dtypes());
  for (Arm& arm : scenario.arms) {
    if (!arm.program.native) value.fail("arm " + in_quotes(arm.name) + " is a command: no dtype");
    arm.program.native->dtype = dtype;
  }
}

void set_value(Scenario& scenario, const std::string& key, const Node& value) {
  if (key == "ranks") scenario.ranks = ranks_from(value);
  if (key == "dtype") set_dtype(scenario, value);
  if (key == "steps") scenario.steps = value.integer(1, kMaxJsonInteger);
  if (key == "seed") scenario.seed = seed_from(value);
  if (key == "micro_steps") scenario.micro_steps = value.integer(1, kMaxJsonInteger);
}

// "4", "bf16": as the value stands in a name. 2.0 is written 2.
std::string label_of(const Node& value) {
  if (value.json().is_string()) return value.text();
  return std::to_string(value.integer(0, kMaxJsonInteger));
}

struct Labelled {
  Scenario scenario;
  std::string labels;  // "ranks=4,dtype=bf16"
};

std::vector<Labelled> spread(const std::vector<Labelled>& before, const std::string& key,
                             const Node& list) {
  const std::vector<Node> values = list.items(1);
  if (before.size() * values.size() > kMaxExpansion) {
    list.fail("the matrix makes more than " + std::to_string(kMaxExpansion) + " scenarios");
  }
  std::vector<Labelled> after;
  for (const Labelled& one : before) {
    for (const Node& value : values) {
      after.push_back(one);
      set_value(after.back().scenario, key, value);
      after.back().labels += (one.labels.empty() ? "" : ",") + key + "=" + label_of(value);
    }
  }
  return after;
}

void refuse_repeated_values(const Node& list) {
  std::vector<std::string> labels;
  for (const Node& value : list.items(1)) {
    const std::string label = label_of(value);
    if (std::ranges::find(labels, label) != labels.end()) value.fail(label + " is given twice");
    labels.push_back(label);
  }
}

}  // namespace

int ranks_from(const Node& node) { return static_cast<int>(node.integer(1, kMaxRanks)); }

std::uint64_t seed_from(const Node& node) {
  return static_cast<std::uint64_t>(node.integer(0, kMaxJsonInteger));
}

std::vector<Scenario> expanded(const Scenario& scenario, const std::optional<Node>& matrix) {
  if (!matrix) return {scenario};
  const ObjectNode object(*matrix, {"ranks", "dtype", "steps", "seed", "micro_steps"});
  if (object.empty()) matrix->fail("must not be empty");
  std::vector<Labelled> all = {{scenario, ""}};
  for (const auto& [key, value] : matrix->json().items()) {
    const Node list = matrix->child(key, value);
    all = spread(all, key, list);
    refuse_repeated_values(list);
  }
  std::vector<Scenario> scenarios;
  for (Labelled& one : all) {
    one.scenario.name += "[" + one.labels + "]";
    scenarios.push_back(std::move(one.scenario));
  }
  return scenarios;
}

}  // namespace gradcheck
