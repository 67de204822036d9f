// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/scenario.h"

namespace gradcheck {

// Reads and decodes one scenario file; more than one scenario where it has a matrix. Only regular
// files are opened, so a pipe cannot hang it. Throws ScenarioError.
std::vector<Scenario> load_scenarios(const std::string& path);

// Reads the rules of a plan file: an array like a scenario's `plan`. Throws ScenarioError.
std::vector<PlanRule> load_plan(const std::string& path);

}  // namespace gradcheck
