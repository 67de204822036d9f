// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "reports/reporter.h"
#include "reports/sink.h"

namespace gradcheck {

// The whole report as report-1 JSON (docs/report.md), one document with a final newline, written
// when the run has finished.
std::unique_ptr<Reporter> make_json_reporter(Sink sink);

}  // namespace gradcheck
