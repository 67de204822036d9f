// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "verdict/gradient.h"

namespace gradcheck {

// Factors between a gradient and what the optimizer takes whose makers were recorded, on one rank.
struct Witnessed {
  double unscale = 1;  // 1/scale of a gradient scaler
  double clip = 1;     // of clip_grad_norm_

  double product() const { return unscale * clip; }
};

Witnessed witnessed(const Context& context, TensorId tensor, std::int64_t step, int rank);

// Ranks whose gradient is another one at `final` than at `reduced`, where that singles some out;
// otherwise those that stand apart at `final`.
std::vector<int> ranks_that_edited(const Context& context, const GradientResult& result);

// True where two factors are the same but for rounding in the making.
bool are_equal_factors(const std::vector<double>& factors);

}  // namespace gradcheck
