// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/tensor_stats.h"

namespace gradcheck::capture {

// What is known of the sum of two tensors of one form from what was measured of each. The sketch is
// the sum's up to rounding. The rest cannot be known without the elements: l1, l2, max_abs are
// upper bounds, min and max bound from below and above, nan and inf count elements of either (an
// element may cancel to another kind), zeros are those that must be zero in both. The digest is
// XXH3-128 of the two digests, in canonical form and in this order.
TensorStats merged(const TensorStats& a, const TensorStats& b);

}  // namespace gradcheck::capture
