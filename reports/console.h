// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "reports/page.h"
#include "reports/reporter.h"
#include "reports/sink.h"

namespace gradcheck {

// For people: each scenario as it finishes, verdict first, one line an arm, then what is wrong and
// what to do about it; at the end a summary line. An arm that ended as expected stays short.
std::unique_ptr<Reporter> make_console_reporter(Sink sink, const ConsoleOptions& options);

}  // namespace gradcheck
