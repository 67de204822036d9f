// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "verdict/findings.h"
#include "verdict/gradient.h"

namespace gradcheck {

// Ranks that reduce gradients over one group and were given the same batch (GC601): whether the
// gradients differ does not matter, since dropout hides a missing sampler.
void find_same_data(const Context& context, FindingSet& findings);

}  // namespace gradcheck
