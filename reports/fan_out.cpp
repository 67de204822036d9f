// SPDX-License-Identifier: Apache-2.0
#include "reports/fan_out.h"

#include <exception>
#include <utility>

namespace gradcheck {

void FanOut::add(std::unique_ptr<Reporter> reporter) { reporters_.push_back(std::move(reporter)); }

void FanOut::each(const std::function<void(Reporter&)>& tell) {
  for (std::unique_ptr<Reporter>& reporter : reporters_) {
    if (reporter == nullptr) continue;
    try {
      tell(*reporter);
    } catch (const std::exception& error) {
      errors_.emplace_back(error.what());
      reporter.reset();
    }
  }
}

void FanOut::run_started(const RunInfo& run) {
  each([&run](Reporter& reporter) { reporter.run_started(run); });
}

void FanOut::scenario_finished(const ScenarioReport& scenario) {
  each([&scenario](Reporter& reporter) { reporter.scenario_finished(scenario); });
}

void FanOut::run_finished(const Report& report) {
  each([&report](Reporter& reporter) { reporter.run_finished(report); });
}

}  // namespace gradcheck
