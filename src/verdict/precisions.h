// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/evidence_table.h"
#include "verdict/findings.h"

namespace gradcheck {

// Calls of log_softmax, cross_entropy and logsumexp over one vocabulary that two lines of the
// program make in two precisions, one of them coarser than f32 (GC590): a note, once for each
// number of classes. Never more than that: healthy programs do it, and fused kernels and rollouts
// in other processes are not seen.
void find_two_precisions(const Context& context, FindingSet& findings);

// Lines whose calls make log-probs in a precision coarser than f32, with gradients on.
std::vector<std::string> coarse_call_sites(const EvidenceTable& table);

// What the scope says where no log-probs were handed over.
std::string log_probs_not_seen(const EvidenceTable& table);

}  // namespace gradcheck
