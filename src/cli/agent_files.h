// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "run/host.h"
#include "run/job_arm.h"

namespace gradcheck {

// The agent's folder and library: installed beside this program, or in the source tree;
// GRADCHECK_AGENT and GRADCHECK_CAPTURE override. Errors: InfrastructureError where one is missing.
AgentFiles agent_files(const Host& host);

// `argv` with a leading `python` or `python3` replaced by the interpreter that --python names; an
// empty one replaces nothing. Errors: UsageError where there is no such file.
std::vector<std::string> with_python(std::vector<std::string> argv, const std::string& python);

}  // namespace gradcheck
