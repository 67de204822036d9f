// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/report.h"
#include "run/job_arm.h"

namespace gradcheck {

// A job's evidence as an answer: one arm a world, in the order in which they announced themselves;
// one arm that says why where none did. Expectations are not applied.
std::vector<ArmReport> judge_job(const JobEvidence& evidence, const JobSpec& spec,
                                 const std::vector<PlanRule>& rules, bool all_tensors);

// How the job ended, if that forbids exit code 0 although its evidence may be in order: "the job
// exited with status 3". Empty where it ended well, where we ended it, and where a process was
// killed by a signal after its rank had said goodbye.
std::string bad_exit(const JobEvidence& evidence);

// A job's bad exit forbids a pass, whatever its gradients were; an empty `problem` changes nothing.
void hold_against_exit(ArmReport& arm, const std::string& problem);

// {"torch", "2.13.0"}, … as the first rank said.
Pairs versions_of(const JobEvidence& evidence);

}  // namespace gradcheck
