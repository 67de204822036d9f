// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/finding.h"
#include "model/scenario.h"
#include "reports/requests.h"
#include "run/compare_runner.h"
#include "run/job_arm.h"
#include "run/log_prob_files.h"
#include "scenario/catalog.h"

namespace gradcheck {

enum class Command : std::uint8_t {
  run,
  exec,
  judge,
  plan,
  list,
  validate,
  logp,
  compare,
  report,
  explain,
  help,
  version
};

// The command line, understood but not yet checked against files. Plain, so that commands can be
// tested without parsing.
struct CommandLine {
  Command command = Command::run;
  std::string help_text;  // of `help`

  Selection selection;
  std::vector<std::string> arms;
  Overrides overrides;
  std::string scenario_directory;

  JobSpec job;            // of exec
  std::string plan_file;  // of exec and judge
  std::string python;     // of exec and run: stands in for `python`

  LogProbFiles log_prob_files;  // of logp
  LogProbConditions log_prob_conditions;

  CompareOptions compare;  // of compare: what the files are and how they are held

  std::vector<std::string> files;  // of validate, report and judge
  std::string topic;               // of explain

  std::string format = "console";
  std::vector<ReportRequest> reports;
  Severity fail_on = Severity::error;
  bool quiet = false;
  int verbosity = 0;
  std::string color = "auto";
};

// Errors: UsageError, with the nearest known option or command where there is one.
CommandLine parse_command_line(const std::vector<std::string>& arguments);

}  // namespace gradcheck
