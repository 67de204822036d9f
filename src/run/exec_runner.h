// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "model/finding.h"
#include "model/plan.h"
#include "reports/reporter.h"
#include "run/host.h"
#include "run/job_arm.h"

namespace gradcheck {

struct ExecOptions {
  JobSpec job;
  AgentFiles agent;
  std::vector<PlanRule> rules;  // --plan
  Severity fail_on = Severity::error;
  bool all_tensors = false;
  std::vector<std::string> argv;
  std::string tool_version;
  std::function<void(Stream, const std::string&)> show;
};

// Runs an unmodified job, judges it and tells `reporter`: one scenario, named after the script,
// with an arm a world, each expected to be consistent. Returns the whole report. Errors:
// InfrastructureError when the job cannot be started; Interrupted.
Report run_exec(const ExecOptions& options, const Host& host, Reporter& reporter);

// Judges evidence that lies in a folder (run/evidence_files.h) in the same way; options.job is not
// run. Errors: InfrastructureError.
Report run_judge(const std::string& directory, const ExecOptions& options, const Host& host,
                 Reporter& reporter);

// The judged worlds alone. Errors: InfrastructureError.
std::vector<ArmReport> judged_worlds(const std::string& directory, const ExecOptions& options);

// The script that a command runs: "train.py" of `torchrun --nproc-per-node 2 train.py --lr 1`.
std::string script_name(const std::vector<std::string>& argv);

}  // namespace gradcheck
