// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "verdict/findings.h"
#include "verdict/gradient.h"

namespace gradcheck {

// Is the evidence what it should be? Stages that were not closed where their moment came (GC603
// for `local`, GC604 otherwise), ranks or the whole program with fewer steps or micro-steps than
// they should have (GC804, GC604), steps that some ranks skipped (GC804), ranks that were given the
// same data (GC601). Whatever it finds forbids `consistent`. Not for programs that failed: their
// stages are missing for a known reason.
void find_gaps(const Context& context, FindingSet& findings);

}  // namespace gradcheck
