// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "run/job_arm.h"

namespace gradcheck {

// Evidence in a folder: DIR/<world>/rank-<r>.<restart>.jsonl with payload files beside it
// (evidence.md). It is written by ranks (`--evidence`) or left by the front (`--keep`); the verdict
// is the same.

// Errors: InfrastructureError where the folder cannot be read or holds no evidence.
JobEvidence read_evidence(const std::string& directory);

// Refuses a folder that holds something already, and makes one that is not there.
// Errors: UsageError naming `option`; InfrastructureError where it cannot be made.
void require_empty_folder(const std::string& option, const std::string& directory);

// Writes what the front received to a folder of that layout, and copies the payload files that the
// worlds' evidence names from `run_directory`.
// Errors: InfrastructureError.
void keep_evidence(const std::string& directory, const std::string& run_directory,
                   const JobWorlds& worlds, const std::map<int, std::string>& lines);

}  // namespace gradcheck
