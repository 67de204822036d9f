// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "verdict/gradient.h"

namespace gradcheck {

// What each wrong or differing gradient turned out to be (verdicts.md §8): fills `diagnosis` and
// `weights` from digests, from weights fitted over ranks and micro-steps, and from the same audit
// that judged it, asked with the suspected weights. What fits nothing keeps code 0.
void attribute(const Context& context, std::vector<GradientResult>& results);

}  // namespace gradcheck
