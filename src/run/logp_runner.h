// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "reports/reporter.h"
#include "run/host.h"
#include "run/log_prob_files.h"

namespace gradcheck {

struct LogpOptions {
  LogProbFiles files;
  LogProbConditions conditions;
  Severity fail_on = Severity::error;
  std::vector<std::string> argv;
  std::string tool_version;
};

// Reads and judges dumped log-probs and tells `reporter`: one scenario, one arm that is expected to
// be consistent. Returns the whole report. Errors: UsageError where a file is not what it should
// be.
Report run_logp(const LogpOptions& options, const Host& host, Reporter& reporter);

// A reading as an arm: outcome, headline, findings and causes are the arm's.
ArmReport arm_of(LogProbReading reading);

}  // namespace gradcheck
