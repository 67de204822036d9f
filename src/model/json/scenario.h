// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/scenario.h"

namespace gradcheck {

// One scenario file (schema scenario-1, design.md §4), strictly decoded: each arm's program is the
// file's with `change` (RFC 7396) merged in. Usually one scenario; with a `matrix` one for each
// combination of values, named "kto[ranks=4,dtype=bf16]", keys in file order, the last varying
// fastest. Matrix values replace those at the top of the file.
// `file` is named in errors; its stem must be the scenario's name.
// Throws ScenarioError at the first thing wrong, with the JSON pointer of where it stands in the
// file: a wrong key that a `change` brought is shown in that `change`.
std::vector<Scenario> scenarios_from_json(std::string_view text, const std::string& file);

// A plan file: the array of rules that a scenario holds under `plan`. Throws ScenarioError.
std::vector<PlanRule> plan_from_json(std::string_view text, const std::string& file);

}  // namespace gradcheck
