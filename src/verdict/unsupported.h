// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "verdict/findings.h"
#include "verdict/gradient.h"

namespace gradcheck {

// Models in wrappers whose reductions this version does not know (GC604): nothing is guessed about
// their gradients, which the agent does not record either.
void find_unsupported(const Context& context, FindingSet& findings);

}  // namespace gradcheck
