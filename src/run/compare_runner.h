// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "model/dumps.h"
#include "model/finding.h"
#include "model/plan.h"
#include "reports/reporter.h"
#include "run/host.h"

namespace gradcheck {

struct CompareOptions {
  std::vector<std::string> ranks;   // files, folders, patterns: see run/dump_files.h
  std::vector<std::string> locals;  // the same; empty: no audit
  std::string reference;            // a file or folder; empty: none
  Tolerance tolerance;
  Reduction reduction = Reduction::mean;
  double factor = 1;
  std::optional<DType> wire_dtype;
  Severity fail_on = Severity::error;
  bool all_tensors = false;
  std::vector<std::string> argv;
  std::string tool_version;
};

// Reads and judges dumped tensors and tells `reporter`: one scenario, one arm that is expected to
// be consistent. Returns the whole report. Errors: UsageError where a file is not what it should
// be, or the words do not say which rank is whose.
Report run_compare(const CompareOptions& options, const Host& host, Reporter& reporter);

}  // namespace gradcheck
