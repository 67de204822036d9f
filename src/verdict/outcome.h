// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/report.h"
#include "verdict/gradient.h"

namespace gradcheck {

// The outcome of an arm whose program ended well (verdicts.md §6). `consistent` is earned: no
// error finding, something compared and proven, nothing unrecorded, no rung left open.
Outcome decide(const Context& context, const std::vector<GradientResult>& results,
               const ArmReport& arm);

// One clause for the console: what the evidence says.
std::string headline(const Context& context, const std::vector<GradientResult>& results,
                     const ArmReport& arm);

}  // namespace gradcheck
