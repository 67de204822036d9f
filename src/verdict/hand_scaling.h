// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "verdict/gradient.h"

namespace gradcheck {

// What one gradient was multiplied by between `reduced` and `final` on each rank of its group,
// where nobody was seen to do it.
struct UnseenFactor {
  const GradientResult* result = nullptr;
  std::vector<double> factors;  // group order; 1: untouched, or explained
  double slack = 0;             // relative, of rounding
  bool is_undecided = false;    // one step cannot tell clipping from a constant factor
};

// Clipping by hand: one factor below 1 for all gradients of a model, the same on every rank, and
// not the same in every step. Factors of 1/N are forgotten or repeated divisions.
class HandScaling {
 public:
  void add(UnseenFactor seen);  // every gradient that an optimizer took

  // Takes what is clipping out of the factors and says so in `notes`; the others remain.
  std::vector<UnseenFactor> settle(const Context& context, std::vector<std::string>& notes);

 private:
  std::map<StepOfModel, std::vector<UnseenFactor>> steps_;
};

}  // namespace gradcheck
