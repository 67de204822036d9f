// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <vector>

#include "model/report.h"
#include "verdict/findings.h"

namespace gradcheck {

// The log-probs that a job's ranks handed over, by step and name: readings into arm.logp, what they
// show (GC5xx, GC605) into the findings. Only arrays whose old
// was made apart from new, with no optimizer step between the two, are a test; of the others
// log_probs_not_checked tells. Old that is new is a note, never a failure. A rank that handed over
// nothing where others did forbids `consistent` (GC604).
void judge_log_prob_sets(const Context& context, FindingSet& findings, ArmReport& arm);

// Appends what the readings say of causes; each cause once.
void name_log_prob_causes(const Context& context, std::span<const LogProbArm> readings,
                          std::vector<CauseClaim>& causes);

// What the scope says of log-probs: that there were none, or which of them were no test.
std::vector<std::string> log_probs_not_checked(const Context& context, const ArmReport& arm);

}  // namespace gradcheck
