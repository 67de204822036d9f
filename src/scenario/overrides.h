// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/scenario.h"

namespace gradcheck {

// Options of the command line laid over scenarios. All throw UsageError, before anything runs.

// The scenario as it will run. Labels in a matrix name follow: "kto[ranks=4]" with --ranks 2
// becomes "kto[ranks=2]". Refused: values out of range, unknown names, --dtype and --backend for a
// command, ranks and steps that the scenario's faults or expected exceptions do not fit.
Scenario apply_overrides(Scenario scenario, const Overrides& overrides);

// All of them; scenarios of a matrix that became the same one run once.
std::vector<Scenario> apply_overrides(const std::vector<Scenario>& scenarios,
                                      const Overrides& overrides);

// Keeps the named arms and those they refer to, in the scenario's order. True if some were left
// out: the verdict then says `control: not run`. No names keep all.
bool select_arms(Scenario& scenario, const std::vector<std::string>& names);

}  // namespace gradcheck
