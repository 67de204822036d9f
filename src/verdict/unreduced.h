// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "verdict/claims.h"
#include "verdict/gradient.h"

namespace gradcheck {

// Why gradients stayed what their rank made of them (GC201, GC202, GC203), from what was seen to
// happen before their backwards: all gradients of a model alike, or some.
void explain_unreduced(const Context& context, const std::vector<GradientResult>& results,
                       const Finding& finding, ClaimSet& claims);

// Ranks of the group on which some micro-step of the gradient's window brought nothing.
std::vector<int> ranks_without_local(const Context& context, const GradientResult& result);

}  // namespace gradcheck
