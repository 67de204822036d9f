// SPDX-License-Identifier: Apache-2.0
#include "verdict/witness.h"

#include <algorithm>
#include <cmath>

namespace gradcheck {
namespace {

// Added by clip_grad_norm_ to the norm before it divides (torch/nn/utils/clip_grad.py).
constexpr double kClipEpsilon = 1e-6;

}  // namespace

Witnessed witnessed(const Context& context, TensorId tensor, std::int64_t step, int rank) {
  Witnessed factor;
  const auto changes = context.facts.changes.find({rank, step});
  if (changes == context.facts.changes.end()) return factor;
  for (const EventRecord* event : changes->second) {
    if (!covers(context.table(), *event, tensor)) continue;
    if (event->type == EventType::clip) {
      factor.clip *= std::min(1.0, event->max_norm / (event->norm + kClipEpsilon));
    } else if (event->scale > 0) {
      factor.unscale /= event->scale;
    }
  }
  return factor;
}

bool are_equal_factors(const std::vector<double>& factors) {
  return std::all_of(factors.begin(), factors.end(), [&](double factor) {
    return std::abs(factor - factors.front()) <= kClipEpsilon * std::abs(factors.front());
  });
}

}  // namespace gradcheck
