// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "verdict/findings.h"
#include "verdict/gradient.h"

namespace gradcheck {

// Wrappers and groups that the plan cannot be read from: ranks that declare different ones for one
// model or name, and groups that are no set of this world's ranks (GC604). The plan goes by the
// first rank, so what it says of the others is not known.
void find_contradictions(const Context& context, FindingSet& findings);

}  // namespace gradcheck
