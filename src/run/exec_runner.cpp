// SPDX-License-Identifier: Apache-2.0
#include "run/exec_runner.h"

#include <fmt/format.h>

#include <filesystem>

#include "launch/clock.h"
#include "run/evidence_files.h"
#include "run/interrupt.h"
#include "run/job_report.h"
#include "run/run_info.h"
#include "run/runner.h"
#include "verdict/findings.h"
#include "verdict/judge.h"

namespace gradcheck {
namespace {

std::string title_of(const JobEvidence& evidence, const ScenarioReport& report) {
  std::string title;
  for (const auto& [name, version] : versions_of(evidence)) {
    if (name == "torch") title = "torch " + version;
  }
  std::uint64_t steps = 0, tensors = 0;
  for (const ArmReport& arm : report.arms) {
    steps = std::max(steps, static_cast<std::uint64_t>(arm.scope.steps));
    tensors = std::max(tensors, static_cast<std::uint64_t>(arm.totals.inventory));
  }
  if (tensors == 0) return title;
  if (!title.empty()) title += "   ";
  return title + counted(steps, "step") + ", " + counted(tensors, "tensor");
}

void name_arms(std::vector<ArmReport>& arms) {
  if (arms.size() == 1) arms.front().name = "job";
  for (std::size_t i = 0; arms.size() > 1 && i < arms.size(); ++i) {
    arms[i].name = fmt::format("world {}", i);
  }
}

ScenarioReport report_of(const JobEvidence& evidence, const ExecOptions& options) {
  ScenarioReport report;
  report.name = script_name(options.job.argv);
  report.arms = judge_job(evidence, options.job, options.rules, options.all_tensors);
  report.verdict = Verdict::skip;
  name_arms(report.arms);
  for (ArmReport& arm : report.arms) {
    Expect expect;
    expect.outcome = Outcome::consistent;
    apply_expectation(arm, expect, {arm.world_size, arm.dtype, false, options.fail_on});
    if (!evidence.worlds->problems().empty()) arm.verdict = Verdict::error;
    hold_against_exit(arm, bad_exit(evidence));
    report.verdict = worse(report.verdict, arm.verdict);
    if (report.reason.empty()) report.reason = arm.reason;
  }
  report.title = title_of(evidence, report);
  return report;
}

}  // namespace

std::string script_name(const std::vector<std::string>& argv) {
  for (std::size_t i = 0; i < argv.size(); ++i) {
    if (argv[i].ends_with(".py")) return std::filesystem::path(argv[i]).filename().string();
    if (argv[i] == "-m" && i + 1 < argv.size()) return argv[i + 1];
  }
  return argv.empty() ? "" : std::filesystem::path(argv.front()).filename().string();
}

namespace {

Report tell(const JobEvidence& evidence, Report report, const ExecOptions& options,
            double duration_s, Reporter& reporter) {
  report.scenarios.push_back(report_of(evidence, options));
  ScenarioReport& scenario = report.scenarios.front();
  scenario.duration_s = duration_s;
  for (ArmReport& arm : scenario.arms) arm.duration_s = duration_s;
  report.run.world_size = scenario.arms.front().world_size;
  report.run.backend = scenario.arms.front().backend;
  for (const auto& version : versions_of(evidence)) report.run.versions.push_back(version);
  report.run.duration_s = duration_s;
  report.summary = summarise(report.scenarios);
  reporter.run_started(report.run);
  reporter.scenario_finished(scenario);
  reporter.run_finished(report);
  return report;
}

Report begin_report(const ExecOptions& options, const Host& host) {
  Report report;
  report.tool_version = options.tool_version;
  report.run = begin_run(host, options.tool_version, options.argv, options.argv);
  return report;
}

// Ranks that wrote to files said nothing on the socket.
void take_files(JobEvidence& evidence, const std::string& directory) {
  JobEvidence files = read_evidence(directory);
  evidence.worlds = std::move(files.worlds);
  evidence.payloads = std::move(files.payloads);
}

}  // namespace

Report run_exec(const ExecOptions& options, const Host& host, Reporter& reporter) {
  const auto start = Clock::now();
  const InterruptWatch interrupt;
  Report report = begin_report(options, host);
  JobEvidence evidence = run_job({options.job,
                                  options.agent,
                                  report.run.id,
                                  host.temporary_directory,
                                  interrupt,
                                  {},
                                  options.show});
  const bool wrote = evidence.seen.wrapped > 0 && !options.job.evidence_directory.empty();
  if (wrote) take_files(evidence, options.job.evidence_directory);
  const double duration_s = source_date_epoch(host) ? 0 : seconds_since(start);
  return tell(evidence, std::move(report), options, duration_s, reporter);
}

std::vector<ArmReport> judged_worlds(const std::string& directory, const ExecOptions& options) {
  return judge_job(read_evidence(directory), options.job, options.rules, options.all_tensors);
}

Report run_judge(const std::string& directory, const ExecOptions& options, const Host& host,
                 Reporter& reporter) {
  const JobEvidence evidence = read_evidence(directory);
  return tell(evidence, begin_report(options, host), options, 0, reporter);
}

}  // namespace gradcheck
