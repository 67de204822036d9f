// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cli/command_line.h"
#include "model/outcome.h"
#include "reports/fan_out.h"
#include "reports/page.h"
#include "run/host.h"

namespace gradcheck {

// How the console report looks on this terminal with these options.
ConsoleOptions console_options(const CommandLine& line, const Host& host);

// Names on stderr the reports that could not be written. `code` is the run's; a lost report turns
// success and `all skipped` into 3, while a failure stays one.
ExitCode exit_code(int code, const FanOut& reports);

}  // namespace gradcheck
