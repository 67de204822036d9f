// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <vector>

#include "verdict/gradient.h"
#include "verdict/weights.h"

namespace gradcheck {

// Weights of the ranks' locals in the reduced value, fitted over all tensors of one model, step
// and plan that the rounding bound let pass: what keeps its power where the bound loses it.
struct WeightReading {
  NameId model = 0;
  std::int64_t step = 0;
  std::vector<int> group;
  Fit fit;
  double declared = 0;
  double visible = 0;  // smallest weight error that would have failed; 0 where refused
  bool right = true;   // every weight within six standard errors + γ·|w| of the declared one
};

// Marks every gradient of a plan whose weights are not the declared ones as wrong, and those whose
// reduction neither test could have seen to miss a rank as inconclusive.
std::vector<WeightReading> judge_weights(const Context& context,
                                         std::vector<GradientResult>& results);

// The stacked sketches of some gradients, one column a rank of the group. Members without finite
// sketches are left out. All members have the same group.
Stack rank_stack(const Context& context, std::span<const GradientResult* const> members,
                 int value_rank);

// The declared weight times γ, the share by which rounding may shift all weights alike.
double rounding_of_weight(const Context& context, const GradientResult& member);

}  // namespace gradcheck
