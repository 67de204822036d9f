// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/report.h"

namespace gradcheck {

// One output format. Reporters see plain structs, never the runner; events arrive in this order,
// on one thread: run_started, scenario_finished for each scenario, run_finished.
class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void run_started(const RunInfo& run) = 0;
  virtual void scenario_finished(const ScenarioReport& scenario) = 0;
  virtual void run_finished(const Report& report) = 0;  // the whole report, summary included
};

}  // namespace gradcheck
