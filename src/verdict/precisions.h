// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/evidence_table.h"
#include "verdict/findings.h"

namespace gradcheck {

// Calls of log_softmax, cross_entropy and logsumexp over one vocabulary that two lines of the
// program make in two precisions, one of them coarser than f32 (GC590): a note, once for each
// number of classes. Never more than that: healthy programs do it, and fused kernels and rollouts
// in other processes are not seen.
void find_two_precisions(const Context& context, FindingSet& findings);

// What the scope says of log-probs, whose values are not recorded.
std::string log_probs_not_checked(const EvidenceTable& table);

}  // namespace gradcheck
