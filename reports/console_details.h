// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include "model/report.h"
#include "reports/page.h"

namespace gradcheck {

// What -v adds to the console: the run's surroundings, and for each arm what was covered, seen and
// planned, rung by rung, step by step, tensor by tensor.

void add_run_details(Page& page, const RunInfo& run);
void add_scenario_details(Page& page, const ScenarioReport& scenario);
void add_arm_details(Page& page, std::size_t indent, const ArmReport& arm);

}  // namespace gradcheck
