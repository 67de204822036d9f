// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <vector>

#include "model/evidence_table.h"
#include "verdict/plan.h"

namespace gradcheck {

// What a job's collectives and values say about gradients that nobody declared (verdicts.md §1).
// The only inferences that are allowed; equal digests alone are never one.
struct SeenReduction {
  std::vector<int> group;  // ascending
  bool averages = false;   // the collective divides; otherwise mean and sum are both possible
};

// Gradients that an all-reduce named.
std::map<TensorId, SeenReduction> read_collectives(const EvidenceTable& table, const Facts& facts);

// Gives undeclared gradients that start equal the group of their siblings, where more than half of
// a model without a wrapper was reduced over it: named by a collective, or of equal bits though the
// locals differ.
void infer_from_siblings(const EvidenceTable& table, const Facts& facts, Plan& plan);

}  // namespace gradcheck
