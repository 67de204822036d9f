// SPDX-License-Identifier: Apache-2.0
#include "verdict/witness.h"

#include <algorithm>
#include <cmath>

namespace gradcheck {
namespace {

// Added by clip_grad_norm_ to the norm before it divides (torch/nn/utils/clip_grad.py).
constexpr double kClipEpsilon = 1e-6;

// Of what was only digested no more is known than that it is there.
bool is_same(const Entry& a, const Entry& b) {
  const bool absent = a.state == TensorState::absent;
  if (absent || b.state == TensorState::absent) return a.state == b.state;
  return a.dtype == b.dtype && a.digest == b.digest;
}

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

std::vector<int> ranks_that_edited(const Context& context, const GradientResult& result) {
  const auto& group = line_of(context, result).group;
  const RowKey key = row_key(result.tensor, {result.step, result.reduced.micro}, Stage::final);
  std::vector<int> edited;
  for (const int rank : group) {
    const Entry* final = find_entry(context.table(), key, rank);
    const Entry* reduced = find_entry(context.table(), result.reduced, rank);
    if (final == nullptr || reduced == nullptr || !is_same(*final, *reduced)) {
      edited.push_back(rank);
    }
  }
  const bool singles_out = !edited.empty() && edited.size() < group.size();
  return singles_out ? edited : minority(compare_ranks(context.table().entries(key), group));
}

bool are_equal_factors(const std::vector<double>& factors) {
  return std::all_of(factors.begin(), factors.end(), [&](double factor) {
    return std::abs(factor - factors.front()) <= kClipEpsilon * std::abs(factors.front());
  });
}

}  // namespace gradcheck
