// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "verdict/audit.h"

namespace gradcheck {

// Is the value what one rank accumulated, bit for bit: ((g₀ + g₁) + g₂) over the parts in their
// order, rounded to the stored type at every addition, as autograd adds to a gradient
// (torch/csrc/autograd/functions/accumulate_grad.h)? A NaN equals any NaN: which payload survives
// an addition is the processor's choice. Weights are not looked at. Nothing where elements are not
// at hand, types differ, or no part is present.
std::optional<bool> is_exact_sum(const AuditQuestion& question);

}  // namespace gradcheck
