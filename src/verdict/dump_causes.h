// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <vector>

#include "verdict/gradient.h"

namespace gradcheck {

// Causes that dumped tensors can show: who stands with whom and, where there are local gradients,
// what the reduced ones are made of. What the program did is not known, so that nothing is certain
// that only its wrapper and backwards could tell.
std::vector<CauseClaim> causes_of_dumps(const Context& context,
                                        const std::vector<GradientResult>& results,
                                        std::span<const Finding> findings, bool has_locals);

}  // namespace gradcheck
