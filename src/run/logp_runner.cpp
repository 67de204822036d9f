// SPDX-License-Identifier: Apache-2.0
#include "run/logp_runner.h"

#include <fmt/format.h>

#include <utility>

#include "launch/clock.h"
#include "run/run_info.h"
#include "run/runner.h"
#include "verdict/judge.h"
#include "verdict/logp/judge.h"

namespace gradcheck {
namespace {

ScenarioReport scenario_of(const LogpOptions& options, double& duration_s) {
  const auto start = Clock::now();
  const std::vector<LogProbShard> shards = read_log_probs(options.files);
  ScenarioReport scenario;
  scenario.name = "logp";
  scenario.arms.push_back(arm_of(judge_log_probs(shards, options.conditions)));
  ArmReport& arm = scenario.arms.front();
  arm.world_size = static_cast<int>(shards.size());
  Expect expect;
  expect.outcome = Outcome::consistent;
  apply_expectation(arm, expect, {arm.world_size, arm.dtype, false, options.fail_on});
  scenario.verdict = arm.verdict;
  scenario.reason = arm.reason;
  scenario.title = fmt::format("{} tokens", arm.logp.front().reading.counts.tokens);
  duration_s = seconds_since(start);
  return scenario;
}

}  // namespace

ArmReport arm_of(LogProbReading reading) {
  ArmReport arm;
  arm.name = "logp";
  arm.probe = "files";
  arm.outcome = reading.outcome;
  arm.headline = reading.headline;
  arm.findings = reading.findings;
  arm.causes = reading.causes;
  arm.notes = std::exchange(reading.notes, {});
  arm.logp.push_back({0, "", "files", std::move(reading)});
  return arm;
}

Report run_logp(const LogpOptions& options, const Host& host, Reporter& reporter) {
  Report report;
  report.tool_version = options.tool_version;
  report.run = begin_run(host, options.tool_version, options.argv, options.argv);
  double duration_s = 0;
  report.scenarios.push_back(scenario_of(options, duration_s));
  ScenarioReport& scenario = report.scenarios.front();
  if (source_date_epoch(host)) duration_s = 0;
  scenario.duration_s = scenario.arms.front().duration_s = duration_s;
  report.run.duration_s = duration_s;
  report.run.world_size = scenario.arms.front().world_size;
  report.summary = summarise(report.scenarios);
  reporter.run_started(report.run);
  reporter.scenario_finished(scenario);
  reporter.run_finished(report);
  return report;
}

}  // namespace gradcheck
