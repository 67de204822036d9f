// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "launch/command.h"
#include "run/job_arm.h"

namespace gradcheck {

// The commands to start for a job: one for each rank with RANK, LOCAL_RANK, WORLD_SIZE,
// LOCAL_WORLD_SIZE, MASTER_ADDR and a free MASTER_PORT, or the user's own as it is; each with the
// agent's variables (PYTHONPATH, GRADCHECK_JOB).
std::vector<CommandSpec> commands_of(const JobInput& input, const std::string& run_directory);

}  // namespace gradcheck
