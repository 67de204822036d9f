// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/evidence_table.h"
#include "verdict/facts.h"
#include "verdict/plan.h"

namespace gradcheck {

// A communication hook of the program's own may average in a coarser type than gradients are stored
// in, and nobody says so. Where a model's gradients are all right with the rounding of f16 or bf16,
// and not all with their own, that type is taken to be the wire's.
void infer_wires(const EvidenceTable& table, const Facts& facts, Plan& plan);

}  // namespace gradcheck
