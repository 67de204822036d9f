// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <vector>

#include "verdict/gradient.h"

namespace gradcheck {

// Why: one claim for each (cause, model) that the findings and events support (verdicts.md §8),
// surest first. Errors that nothing explains yield `unexplained`; no error, no cause needed.
std::vector<CauseClaim> name_causes(const Context& context,
                                    const std::vector<GradientResult>& results,
                                    std::span<const Finding> findings);

}  // namespace gradcheck
