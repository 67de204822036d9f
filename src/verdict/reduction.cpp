// SPDX-License-Identifier: Apache-2.0
#include "verdict/reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace gradcheck {
namespace {

constexpr double kStandardErrors = 6;

using Members = std::vector<GradientResult*>;

// One plan: everything that decides which weights are right and how they round.
using PlanKey = std::tuple<std::int64_t, NameId, Reduction, double, std::vector<int>, DType,
                           std::vector<Moment>>;

// Gradients that the bound already failed would spoil the fit for all others of their plan.
bool can_be_stacked(const GradientResult& result) {
  return result.used && result.compared && !result.differed && !result.absent &&
         result.factors.empty() && result.clips.empty() &&
         result.rung(Rung::reduction_right) != RungResult::fail &&
         result.rung(Rung::reduction_right) != RungResult::not_applicable &&
         result.silent_ranks.empty() && result.agreement.shapes_equal;
}

// Σ over the window of one rank's sketches; nothing where one is missing or not finite.
std::optional<Sketch> summed_sketch(const Context& context, const GradientResult& result,
                                    int rank) {
  Sketch sum{};
  for (const Moment& moment : result.window) {
    const Entry* local =
        find_entry(context.table(), row_key(result.tensor, moment, Stage::local), rank);
    if (local == nullptr || local->state == TensorState::nonfinite) return std::nullopt;
    if (local->state == TensorState::absent || local->state == TensorState::zero) continue;
    const Sketch* sketch = context.table().sketch(*local);
    if (sketch == nullptr) return std::nullopt;
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += (*sketch)[k];
  }
  return sum;
}

// Σ over window and ranks of |w|·‖g‖₂: rounding errors are a share of it.
double scale_of(const Context& context, const GradientResult& result) {
  double scale = 0;
  for (const Moment& moment : result.window) {
    const auto locals = context.table().entries(row_key(result.tensor, moment, Stage::local));
    for (const int rank : line_of(context, result).group) {
      const auto at = static_cast<std::size_t>(rank);
      if (at < locals.size()) scale += locals[at].l2;
    }
  }
  return scale * std::abs(declared_weight(line_of(context, result)));
}

struct Block {
  Sketch value{};
  std::vector<Sketch> columns;
  double scale = 0;
};

std::optional<Block> block_of(const Context& context, const GradientResult& result,
                              int value_rank) {
  const Entry* value = find_entry(context.table(), result.reduced, value_rank);
  if (value == nullptr || value->state == TensorState::nonfinite) return std::nullopt;
  const Sketch* sketch = context.table().sketch(*value);
  const bool is_zero = value->state == TensorState::zero || value->state == TensorState::absent;
  Block block;
  block.scale = scale_of(context, result);
  if ((sketch == nullptr && !is_zero) || !(block.scale > 0)) return std::nullopt;
  if (sketch != nullptr) block.value = *sketch;
  for (const int rank : line_of(context, result).group) {
    const auto column = summed_sketch(context, result, rank);
    if (!column) return std::nullopt;
    block.columns.push_back(*column);
  }
  return block;
}

std::map<PlanKey, Members> by_plan(const Context& context, std::vector<GradientResult>& results) {
  std::map<PlanKey, Members> plans;
  for (GradientResult& result : results) {
    if (!can_be_stacked(result)) continue;
    const PlanLine& line = line_of(context, result);
    if (!block_of(context, result, line.group.front())) continue;
    const Entry* value = find_entry(context.table(), result.reduced, line.group.front());
    plans[{result.step, result.tensor.model, line.reduction, line.factor, line.group, value->dtype,
           result.window}]
        .push_back(&result);
  }
  return plans;
}

void read_weights(WeightReading& reading, const WeightRounding& rounding) {
  if (reading.fit.refused) return;
  for (std::size_t r = 0; r < reading.fit.weights.size(); ++r) {
    const double allowed = allowance(reading.fit, r, reading.declared, rounding);
    const bool close = std::abs(reading.fit.weights[r] - reading.declared) <= allowed;
    reading.right &= close;
    reading.visible = std::max(reading.visible, allowed);
  }
}

// A lost rank is off by its whole weight: a fit that allows as much could not have seen it.
bool fit_is_blind(const WeightReading& reading) {
  return reading.fit.refused || !(reading.visible < std::abs(reading.declared));
}

bool bound_is_blind(const GradientResult& result) {
  return result.audit.how == "none" || !(result.audit.visible < 1);
}

std::string blind_reason(const WeightReading& reading, const GradientResult& member) {
  const std::string bound = member.audit.reason.empty() ? "the rounding bound is too wide to see a "
                                                          "lost rank"
                                                        : member.audit.reason;
  if (reading.fit.refused) return bound + "; weights: " + reading.fit.reason;
  return fmt::format("{}; weights are known to {:.1g} only", bound, reading.visible);
}

// Either test may fail the rung; one that can see is enough to pass it.
void conclude_member(const WeightReading& reading, GradientResult& member) {
  if (!reading.fit.refused) member.weights = reading.fit.weights;
  const bool single = reading.group.size() < 2;
  if (!reading.right) {
    member.set(Rung::reduction_right, RungResult::fail, "weights are not the declared ones");
    member.wrong = true;
  } else if (!single && fit_is_blind(reading) && bound_is_blind(member) && member.proved) {
    member.set(Rung::reduction_right, RungResult::inconclusive, blind_reason(reading, member));
  } else if (!fit_is_blind(reading) && member.audit.bound_skipped) {
    // Only the bound had nothing to say; the weights did.
    member.set(Rung::reduction_right, RungResult::pass, member.audit.reason);
  }
}

// Where no weights could be read, a pass by a bound too wide to see a lost rank proves nothing.
void conclude_without_weights(const Context& context, GradientResult& result) {
  const bool passed = result.rung(Rung::reduction_right) == RungResult::pass;
  if (!passed || !result.proved || line_of(context, result).group.size() < 2) return;
  if (!bound_is_blind(result)) return;
  result.set(Rung::reduction_right, RungResult::inconclusive,
             "the rounding bound is too wide to see a lost rank, and there are no weights");
}

// Fitted around the declared weights, so that right ones are confirmed to full precision.
WeightReading read_plan(const Context& context, const Members& members) {
  const GradientResult& first = *members.front();
  const PlanLine& line = line_of(context, first);
  WeightReading reading;
  reading.model = first.tensor.model;
  reading.step = first.step;
  reading.group = line.group;
  reading.declared = declared_weight(line);
  const std::vector<const GradientResult*> stacked(members.begin(), members.end());
  reading.fit = fit(rank_stack(context, stacked, line.group.front()),
                    std::vector<double>(line.group.size(), reading.declared));
  read_weights(reading, weight_rounding(context, first));
  return reading;
}

}  // namespace

Stack rank_stack(const Context& context, std::span<const GradientResult* const> members,
                 int value_rank) {
  Stack stack(line_of(context, *members.front()).group.size());
  for (const GradientResult* member : members) {
    const auto block = block_of(context, *member, value_rank);
    if (block) stack.add(block->value, block->columns, block->scale);
  }
  return stack;
}

WeightRounding weight_rounding(const Context& context, const GradientResult& member) {
  const int rank = line_of(context, member).group.front();
  const auto question =
      ask(context, member, rank, declared_weights(context, member), member.reductions);
  if (!question) return {};
  WeightRounding rounding;
  // Where γ is out of reach the weights still stand: one rounding is the least.
  rounding.gamma = rounding_factor(*question).value_or(question->roundoff);
  rounding.in_step = question->roundoff * std::sqrt(question->reductions);
  return rounding;
}

double allowance(const Fit& fit, std::size_t r, double weight, const WeightRounding& rounding) {
  return kStandardErrors * fit.errors[r] + rounding.gamma * std::abs(weight) +
         rounding.in_step * fit.leverage[r];
}

std::vector<WeightReading> judge_weights(const Context& context,
                                         std::vector<GradientResult>& results) {
  std::vector<WeightReading> readings;
  std::set<const GradientResult*> read;
  for (const auto& [key, members] : by_plan(context, results)) {
    readings.push_back(read_plan(context, members));
    for (GradientResult* member : members) conclude_member(readings.back(), *member);
    read.insert(members.begin(), members.end());
  }
  for (GradientResult& result : results) {
    if (!read.contains(&result)) conclude_without_weights(context, result);
  }
  return readings;
}

}  // namespace gradcheck
