// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include "verdict/gradient.h"

namespace gradcheck {

// Tries to explain gradients of one step and model by their micro-steps: each of them reduced as
// declared, left as this rank's own, missing, or counted several times. The combination is fitted
// over all members together; a member's diagnosis becomes 203 or 211 where it passes the audit on
// every rank. Requires: members share window and group, and all differ or none does.
void diagnose_micro_steps(const Context& context, std::span<GradientResult* const> members);

}  // namespace gradcheck
