// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "verdict/gradient.h"

namespace gradcheck {

// Every gradient of the inventory at the end of every step that ran, rung by rung (verdicts.md
// §4). ORACLE_CLOSE stays not applicable: there is no reference here. Weights over many tensors
// (§5) are judged afterwards, in reduction.h. In order of steps, then of the inventory.
std::vector<GradientResult> climb(const Context& context);

}  // namespace gradcheck
