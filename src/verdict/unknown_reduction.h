// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "verdict/gradient.h"

namespace gradcheck {

// Gradients that ranks agree on and whose reduction nobody declared: `fits` says whether the mean
// or the sum of the locals is there, which judges nothing. What neither fits is wrong only where
// something else fits exactly: each rank's local clipped by its own norm (GC205), or micro-steps
// that were reduced again and again (GC211).
void read_unknown_reductions(const Context& context, std::vector<GradientResult>& results);

// True if the gradient is each rank's local, clipped by the rank alone, and then reduced by weight.
bool is_clipped_by_rank(const Context& context, const GradientResult& result, double weight);

}  // namespace gradcheck
