// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "run/host.h"

namespace gradcheck {

// Does what the command line says and returns the exit code (design.md §6). Standard output gets
// the report, standard error everything else. The one place where errors are caught.
int run_cli(const std::vector<std::string>& argv, const Host& host);

}  // namespace gradcheck
