// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <utility>

#include "model/evidence_table.h"
#include "model/report.h"

namespace gradcheck {

// Digests of rank 0's parameters after the last step it took, by (model, name).
using FinalWeights = std::map<std::pair<std::string, std::string>, Digest>;

FinalWeights final_weights(const EvidenceTable& table);

// Notes in `report` how many of an arm's parameters are those of its reference, bit for bit.
// `reference`: the name of the arm and its weights. Parameters that only one of them has count as
// compared and not equal.
void compare_weights(const FinalWeights& own,
                     const std::pair<const std::string, FinalWeights>& reference,
                     ArmReport& report);

}  // namespace gradcheck
