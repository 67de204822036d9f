// SPDX-License-Identifier: Apache-2.0
#include "run/runner.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "launch/clock.h"
#include "model/errors.h"
#include "run/counterfactuals.h"
#include "run/interrupt.h"
#include "run/run_info.h"

namespace gradcheck {
namespace {

// What makes two runs the same run.
std::vector<std::string> identity_of(const std::vector<Scenario>& scenarios,
                                     const RunOptions& options) {
  std::vector<std::string> texts;
  for (const Scenario& scenario : scenarios) {
    texts.push_back(scenario.name);
    texts.push_back(std::to_string(scenario.seed));
    for (const Arm& arm : scenario.arms) texts.push_back(arm.name);
  }
  texts.push_back(options.options_text);
  return texts;
}

std::int64_t tensors_of(const ScenarioReport& report) {
  std::int64_t most = 0;
  for (const ArmReport& arm : report.arms) most = std::max(most, arm.totals.inventory);
  return most;
}

std::string title_of(const Scenario& scenario, const ScenarioReport& report) {
  const Program& program = scenario.arms.front().program;
  const std::int64_t tensors = tensors_of(report);
  if (!program.native || tensors == 0) return program.native ? program.native->model : "";
  return program.native->model + ": " + std::to_string(tensors) + " tensors";
}

void describe_program(const std::vector<Scenario>& scenarios, RunInfo& info) {
  if (scenarios.empty()) return;
  const Scenario& first = scenarios.front();
  info.world_size = first.ranks;
  info.seed = first.seed;
  const Program& program = first.arms.front().program;
  if (program.native) info.backend = program.native->backend;
}

class Runner {
 public:
  Runner(const RunOptions& options, const Host& host)
      : options_(options),
        host_(host),
        epoch_(source_date_epoch(host)),
        arms_(host, interrupt_, options.arm) {}

  Report run(const std::vector<Scenario>& scenarios, Reporter& reporter) {
    const auto start = Clock::now();
    Report report;
    report.tool_version = options_.tool_version;
    report.run = begin(scenarios);
    reporter.run_started(report.run);
    for (const Scenario& scenario : scenarios) {
      report.scenarios.push_back(run_one(scenario, report.run.id));
      reporter.scenario_finished(report.scenarios.back());
    }
    report.run.versions.insert(report.run.versions.end(), arms_.versions().begin(),
                               arms_.versions().end());
    report.run.duration_s = epoch_ ? 0 : seconds_since(start);
    report.summary = summarise(report.scenarios);
    reporter.run_finished(report);
    return report;
  }

 private:
  RunInfo begin(const std::vector<Scenario>& scenarios) const {
    RunInfo info =
        begin_run(host_, options_.tool_version, options_.argv, identity_of(scenarios, options_));
    describe_program(scenarios, info);
    return info;
  }

  ScenarioReport run_one(const Scenario& scenario, const std::string& run_id) {
    const auto start = Clock::now();
    ScenarioReport report;
    report.name = scenario.name;
    report.file = scenario.file;
    report.description = scenario.description;
    report.source = scenario.source;
    report.control_not_run = options_.incomplete.contains(scenario.name);
    report.verdict = Verdict::skip;
    for (const Arm& arm : scenario.arms) {
      ArmReport arm_report = arms_.run(scenario, arm, run_id);
      if (epoch_) arm_report.duration_s = 0;
      const Verdict before = report.verdict;
      report.verdict = worse(before, arm_report.verdict);
      const bool first = report.arms.empty() || report.verdict != before;
      if (first || (report.reason.empty() && arm_report.verdict == before)) {
        report.reason = arm_report.reason;
      }
      report.arms.push_back(std::move(arm_report));
    }
    tell_counterfactuals(scenario, report);
    report.title = title_of(scenario, report);
    report.duration_s = epoch_ ? 0 : seconds_since(start);
    return report;
  }

  const RunOptions& options_;
  const Host& host_;
  std::optional<std::int64_t> epoch_;
  InterruptWatch interrupt_;
  ArmRunner arms_;
};

void add_verdict(Summary& summary, Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      ++summary.pass;
      break;
    case Verdict::fail:
      ++summary.fail;
      break;
    case Verdict::error:
      ++summary.error;
      break;
    case Verdict::skip:
      ++summary.skip;
      break;
  }
}

ExitCode exit_code_of(const Summary& summary) {
  if (summary.fail > 0) return ExitCode::failed;
  if (summary.error > 0) return ExitCode::could_not_judge;
  return summary.pass > 0 ? ExitCode::passed : ExitCode::skipped;
}

}  // namespace

Summary summarise(const std::vector<ScenarioReport>& scenarios) {
  Summary summary;
  for (const ScenarioReport& scenario : scenarios) {
    add_verdict(summary, scenario.verdict);
    for (const ArmReport& arm : scenario.arms) {
      if (arm.expected != Outcome::consistent) continue;
      summary.compared += arm.totals.compared;
      summary.differed += arm.totals.differed;
      summary.wrong += arm.totals.wrong;
    }
  }
  summary.exit_code = static_cast<int>(exit_code_of(summary));
  return summary;
}

Report run_scenarios(const std::vector<Scenario>& scenarios, const RunOptions& options,
                     const Host& host, Reporter& reporter) {
  return Runner(options, host).run(scenarios, reporter);
}

}  // namespace gradcheck
