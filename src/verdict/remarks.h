// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "verdict/gradient.h"

namespace gradcheck {

// What is worth telling although nothing is decided from it: micro-steps before the last that were
// not reduced when they should have been (the last one repaired it), and which reduction the
// gradients that nobody declared would fit.
std::vector<std::string> remarks(const Context& context,
                                 const std::vector<GradientResult>& results);

}  // namespace gradcheck
