// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reports/reporter.h"

namespace gradcheck {

// Hands every event to all reporters, in the order they were added. One that fails is dropped and
// the others go on: a full disk must not cost the console its verdict. Never throws what a
// reporter threw; the runner reads errors() after run_finished and ends with exit code 3.
class FanOut : public Reporter {
 public:
  void add(std::unique_ptr<Reporter> reporter);

  void run_started(const RunInfo& run) override;
  void scenario_finished(const ScenarioReport& scenario) override;
  void run_finished(const Report& report) override;

  const std::vector<std::string>& errors() const { return errors_; }  // one sentence each

 private:
  void each(const std::function<void(Reporter&)>& tell);

  std::vector<std::unique_ptr<Reporter>> reporters_;  // null: dropped
  std::vector<std::string> errors_;
};

}  // namespace gradcheck
