// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "verdict/facts.h"

namespace gradcheck {

// Fills `windows` and `dropped` of facts whose models and inventory are known: one walk through the
// events of a model on each rank, however many steps and tensors there are.
void read_windows(const EvidenceTable& table, Facts& facts);

}  // namespace gradcheck
