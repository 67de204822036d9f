// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <set>
#include <string>
#include <vector>

#include "model/report.h"
#include "model/scenario.h"
#include "reports/reporter.h"
#include "run/arm_runner.h"
#include "run/host.h"

namespace gradcheck {

struct RunOptions {
  ArmOptions arm;
  std::vector<std::string> argv;
  std::string tool_version;
  std::set<std::string> incomplete;  // scenarios of which --arm left arms out
  std::string options_text;          // overrides in words; part of the reproducible run id
};

// Runs scenarios whose overrides have been applied, one after the other, and tells `reporter`.
// With SOURCE_DATE_EPOCH set the report is reproducible: started_at is it, durations are 0, host is
// empty, the id a hash of scenarios, options and seeds.
// Returns the whole report; its summary.exit_code is that of the run, save for reports that could
// not be written. Errors: Interrupted.
Report run_scenarios(const std::vector<Scenario>& scenarios, const RunOptions& options,
                     const Host& host, Reporter& reporter);

// Verdicts to counts and exit code (design.md §6).
Summary summarise(const std::vector<ScenarioReport>& scenarios);

}  // namespace gradcheck
