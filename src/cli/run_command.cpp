// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "cli/agent_files.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "model/errors.h"
#include "run/runner.h"
#include "scenario/catalog.h"
#include "scenario/overrides.h"

namespace gradcheck {
namespace {

std::string in_words(const Overrides& overrides) {
  std::string text;
  if (overrides.ranks) text += fmt::format("ranks={} ", *overrides.ranks);
  if (overrides.backend) text += fmt::format("backend={} ", *overrides.backend);
  if (overrides.dtype) text += fmt::format("dtype={} ", *overrides.dtype);
  if (overrides.seed) text += fmt::format("seed={} ", *overrides.seed);
  if (overrides.steps) text += fmt::format("steps={} ", *overrides.steps);
  return text;
}

// One line on a terminal's stderr, rewritten in place and wiped before anything else is printed.
class ProgressLine {
 public:
  explicit ProgressLine(bool enabled) : enabled_(enabled) {}
  ~ProgressLine() { show(""); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& text) const {
    constexpr std::size_t kWidth = 78;
    if (enabled_) fmt::print(stderr, "\r\x1b[K{}", text.substr(0, kWidth));
    if (enabled_) std::fflush(stderr);
  }

 private:
  bool enabled_;
};

// Wipes the progress line whenever a report is about to print.
class WipeFirst : public Reporter {
 public:
  WipeFirst(FanOut& reports, const ProgressLine& progress)
      : reports_(reports), progress_(progress) {}

  void run_started(const RunInfo& run) override { reports_.run_started(run); }
  void scenario_finished(const ScenarioReport& scenario) override {
    progress_.show("");
    reports_.scenario_finished(scenario);
  }
  void run_finished(const Report& report) override {
    progress_.show("");
    reports_.run_finished(report);
  }

 private:
  FanOut& reports_;
  const ProgressLine& progress_;
};

// Without an agent native scenarios run all the same.
std::optional<AgentFiles> agent_if_any(const Host& host) {
  try {
    return agent_files(host);
  } catch (const InfrastructureError&) {
    return std::nullopt;
  }
}

RunOptions run_options(const CommandLine& line, const std::vector<std::string>& argv,
                       const Host& host) {
  RunOptions options;
  options.arm.overridden = line.overrides.any();
  options.arm.fail_on = line.fail_on;
  options.arm.all_tensors = line.verbosity > 0;
  options.arm.rank_binary = rank_binary(host);
  options.arm.agent = agent_if_any(host);
  options.arm.python = line.python;
  options.argv = argv;
  options.tool_version = GRADCHECK_VERSION;
  options.options_text = in_words(line.overrides);
  return options;
}

}  // namespace

std::string rank_binary(const Host& host) {
  return host.env("GRADCHECK_RANK").value_or(host.executable_directory + "/gradcheck-rank");
}

ExitCode run_command(const CommandLine& line, const std::vector<std::string>& argv,
                     const Host& host) {
  RunOptions options = run_options(line, argv, host);
  std::vector<Scenario> scenarios =
      select(load_catalog(scenario_directory(line, host)), line.selection);
  for (Scenario& scenario : scenarios) {
    const bool left_out = select_arms(scenario, line.arms);
    scenario = apply_overrides(std::move(scenario), line.overrides);
    if (left_out) options.incomplete.insert(scenario.name);
  }
  scenarios = apply_overrides(scenarios, {});  // a matrix may have become one scenario
  FanOut reports = open_reports(line.format, line.reports, console_options(line, host));
  const ProgressLine progress(host.stderr_is_terminal && !line.quiet);
  options.arm.progress = [&](const std::string& text) { progress.show(text); };
  WipeFirst reporter(reports, progress);
  const Report report = run_scenarios(scenarios, options, host, reporter);
  return exit_code(report.summary.exit_code, reports);
}

}  // namespace gradcheck
