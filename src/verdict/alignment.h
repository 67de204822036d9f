// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "model/evidence_table.h"

namespace gradcheck {

// A job's evidence in the terms of the judge, where ranks count otherwise than each other:
// - Ranks that ran different numbers of micro-steps in one step are matched from the last one,
// which
//   is where gradients are reduced; what a rank did not run contributes nothing.
// - A model that different ranks wrap over different groups is a model of each group.
// Nothing where every rank counts alike. Elements at hand (payloads) belong to the other numbers.
std::optional<EvidenceTable> aligned(const EvidenceTable& table);

}  // namespace gradcheck
