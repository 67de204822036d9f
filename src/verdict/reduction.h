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
  bool right = true;   // every weight within its allowance of the declared one
};

// Marks every gradient of a plan whose weights are not the declared ones as wrong, and those whose
// reduction neither test could have seen to miss a rank as inconclusive.
std::vector<WeightReading> judge_weights(const Context& context,
                                         std::vector<GradientResult>& results);

// The stacked sketches of some gradients, one column a rank of the group. Members without finite
// sketches are left out. All members have the same group.
Stack rank_stack(const Context& context, std::span<const GradientResult* const> members,
                 int value_rank);

// How sums of one plan round: what a weight read from them may be off by.
struct WeightRounding {
  double gamma = 0;    // shift of all weights alike, as a share: the factor 1/N is itself rounded
  double in_step = 0;  // u·√K: error of an element, as a share of Σ|w||g|, that may be in step with
                       // one rank's gradient
};

WeightRounding weight_rounding(const Context& context, const GradientResult& member);

// Six standard errors + γ·|weight| + what rounding in step with this rank could do: the largest
// distance from `weight` at which a measured weight still counts as it.
double allowance(const Fit& fit, std::size_t r, double weight, const WeightRounding& rounding);

}  // namespace gradcheck
