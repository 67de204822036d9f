// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "model/report.h"
#include "verdict/gradient.h"
#include "verdict/reduction.h"

namespace gradcheck {

// Counts and rows of an arm's report, from the judged gradients. A tensor counts once over all
// steps, and as what it was at any of them.
void summarise(const Context& context, const std::vector<GradientResult>& results,
               const std::vector<WeightReading>& weights, ArmReport& arm);

}  // namespace gradcheck
