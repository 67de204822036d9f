// SPDX-License-Identifier: Apache-2.0
#include "verdict/micro_fit.h"

#include <algorithm>
#include <cmath>

#include "verdict/weights.h"

namespace gradcheck {
namespace {

// How often a micro-step is in the value: as the declared reduction, and as the rank's own.
struct MicroShare {
  double reduced = 0;
  double own = 0;
};
using Shares = std::vector<MicroShare>;

const Sketch* local_sketch(const Context& context, const GradientResult& result,
                           const Moment& moment, int rank) {
  const Entry* local =
      find_entry(context.table(), row_key(result.tensor, moment, Stage::local), rank);
  if (local == nullptr || local->state == TensorState::nonfinite) return nullptr;
  return context.table().sketch(*local);
}

// Two columns a micro-step: the declared reduction of all locals, and this rank's own local.
std::vector<Sketch> columns_of(const Context& context, const GradientResult& result, int rank) {
  const PlanLine& line = line_of(context, result);
  std::vector<Sketch> columns;
  for (const Moment& moment : result.window) {
    Sketch reduced{};
    for (const int other : line.group) {
      const Sketch* sketch = local_sketch(context, result, moment, other);
      if (sketch == nullptr) return {};
      for (std::size_t k = 0; k < reduced.size(); ++k) {
        reduced[k] += declared_weight(line) * (*sketch)[k];
      }
    }
    columns.push_back(reduced);
    if (result.differed) columns.push_back(*local_sketch(context, result, moment, rank));
  }
  return columns;
}

// The nearest whole numbers: a micro-step is in the value or it is not.
Shares rounded_shares(const Fit& fit, bool with_own) {
  Shares shares;
  const std::size_t stride = with_own ? 2 : 1;
  for (std::size_t c = 0; c + stride <= fit.weights.size(); c += stride) {
    shares.push_back({std::round(fit.weights[c]), with_own ? std::round(fit.weights[c + 1]) : 0});
  }
  return shares;
}

// Fitted on the first rank; whether it holds is then asked on all of them.
Shares fitted_shares(const Context& context, std::span<GradientResult* const> members) {
  const GradientResult& first = *members.front();
  const int rank = line_of(context, first).group.front();
  Stack stack(first.window.size() * (first.differed ? 2 : 1));
  for (const GradientResult* member : members) {
    const Entry* value = find_entry(context.table(), member->reduced, rank);
    const Sketch* sketch = value == nullptr ? nullptr : context.table().sketch(*value);
    const auto columns = columns_of(context, *member, rank);
    if (sketch == nullptr || columns.empty() || !(value->l2 > 0)) continue;
    stack.add(*sketch, columns, value->l2);
  }
  const Fit found = fit(stack, std::vector<double>(stack.columns(), 1.0));
  return found.refused ? Shares{} : rounded_shares(found, first.differed);
}

// The same audit that found the gradient wrong decides whether this explains it.
bool holds(const Context& context, const GradientResult& result, int rank, const Shares& shares) {
  const PlanLine& line = line_of(context, result);
  WeightTable weights;
  for (const MicroShare& share : shares) {
    std::vector<double>& row = weights.emplace_back();
    for (const int other : line.group) {
      row.push_back(share.reduced * declared_weight(line) + (other == rank ? share.own : 0));
    }
  }
  return passes(ask(context, result, rank, weights, result.reductions));
}

// A missing micro-step is told before a doubled one: it is the graver of the two.
Diagnosis name_shares(const GradientResult& result, const Shares& shares) {
  Diagnosis twice{211, 1, {}, {}};
  Diagnosis missing{203, 1, {}, {}};
  for (std::size_t m = 0; m < shares.size(); ++m) {
    if (shares[m].reduced > 1) twice.micros.push_back(result.window[m].micro);
    if (shares[m].reduced < 1) missing.micros.push_back(result.window[m].micro);
  }
  if (!missing.micros.empty()) return missing;
  return twice.micros.empty() ? Diagnosis{} : twice;
}

bool can_be_explained(const GradientResult& result) {
  return result.silent_ranks.empty() && result.agreement.complete() &&
         result.agreement.shapes_equal;
}

}  // namespace

void diagnose_micro_steps(const Context& context, std::span<GradientResult* const> members) {
  if (members.empty() || members.front()->window.size() < 2) return;
  const Shares shares = fitted_shares(context, members);
  if (shares.empty()) return;
  for (GradientResult* member : members) {
    const auto& group = line_of(context, *member).group;
    const bool everywhere = std::all_of(group.begin(), group.end(), [&](int rank) {
      return holds(context, *member, rank, shares);
    });
    if (everywhere && can_be_explained(*member)) member->diagnosis = name_shares(*member, shares);
  }
}

}  // namespace gradcheck
