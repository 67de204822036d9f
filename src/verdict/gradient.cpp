// SPDX-License-Identifier: Apache-2.0
#include "verdict/gradient.h"

#include <algorithm>

namespace gradcheck {
namespace {

// All forms in which the evidence has this tensor; the audit picks the best.
std::optional<Part> find_part(const Context& context, const RowKey& key, int rank) {
  const Entry* entry = find_entry(context.table(), key, rank);
  if (entry == nullptr || entry->state == TensorState::unreadable) return std::nullopt;
  Part part;
  part.entry = entry;
  part.sketch = context.table().sketch(*entry);
  part.view = find_view(context.table(), context.payloads, key, rank);
  return part;
}

// A missing local with a weight makes the question unanswerable, not smaller.
bool add_parts(const Context& context, const GradientResult& result, const WeightTable& weights,
               AuditQuestion& question) {
  const auto& group = line_of(context, result).group;
  for (std::size_t m = 0; m < result.window.size(); ++m) {
    const RowKey key = row_key(result.tensor, result.window[m], Stage::local);
    for (std::size_t r = 0; r < group.size(); ++r) {
      if (weights[m][r] == 0) continue;
      auto part = find_part(context, key, group[r]);
      if (!part) return false;
      part->weight = weights[m][r];
      question.parts.push_back(*part);
    }
  }
  return true;
}

// The coarsest type that the value passed through: as stored, or on the wire.
void take_precision(const PlanLine& line, AuditQuestion& question) {
  std::vector<DType> types;
  if (line.wire_dtype) types.push_back(*line.wire_dtype);
  if (question.value.entry->state != TensorState::absent) {
    types.push_back(question.value.entry->dtype);
  }
  for (const Part& part : question.parts) {
    if (part.entry->state != TensorState::absent) types.push_back(part.entry->dtype);
  }
  for (const DType dtype : types) {
    if (!is_measured(dtype) || unit_roundoff(dtype) <= question.roundoff) continue;
    question.roundoff = unit_roundoff(dtype);
    question.subnormal = smallest_subnormal(dtype);
  }
}

bool has_gradient_record(const EvidenceTable& table, const StepFacts& step, TensorId tensor) {
  const auto moments = own_window(step);
  return std::any_of(moments.begin(), moments.end(), [&](const Moment& moment) {
    return table.has(row_key(tensor, moment, Stage::local)) ||
           table.has(row_key(tensor, moment, Stage::reduced)) ||
           table.has(row_key(tensor, moment, Stage::final));
  });
}

// By the last parameter record before the step's backward that says it, else by what was recorded
// of earlier steps.
bool needs_gradient(const Context& context, std::int64_t step, TensorId tensor) {
  bool needs = false;
  const auto read = [&](const Moment& moment, Stage stage) {
    for (const Entry& entry :
         context.table().entries(row_key(tensor, moment, stage, TensorKind::param))) {
      if (entry.recorded && entry.requires_grad >= 0) needs = entry.requires_grad == 1;
    }
  };
  for (const StepFacts& earlier : steps_of(context.facts, tensor.model)) {
    if (earlier.step > step) break;
    read({earlier.step, 0}, Stage::start);
    if (earlier.step == step) break;
    needs |= has_gradient_record(context.table(), earlier, tensor);
    read({earlier.step, earlier.last_micro()}, Stage::after);
  }
  return needs;
}

const ShardRange* range_of(const Context& context, const GradientResult& result, int rank) {
  if (context.shards == nullptr) return nullptr;
  const auto found = context.shards->ranges.find(result.reduced);
  if (found == context.shards->ranges.end()) return nullptr;
  return &found->second[static_cast<std::size_t>(rank)];
}

}  // namespace

WeightTable same_weights(std::size_t micros, const std::vector<double>& ranks) {
  return WeightTable(micros, ranks);
}

const PlanLine& line_of(const Context& context, const GradientResult& result) {
  return context.plan.line(result.tensor);
}

std::string_view model_of(const Context& context, const GradientResult& result) {
  return context.table().text(result.tensor.model);
}

std::string_view name_of(const Context& context, const GradientResult& result) {
  return context.table().text(result.tensor.name);
}

std::optional<AuditQuestion> ask(const Context& context, const GradientResult& result, int rank,
                                 const WeightTable& weights, int reductions) {
  const auto value = find_part(context, result.reduced, rank);
  if (!value) return std::nullopt;
  const PlanLine& line = line_of(context, result);
  AuditQuestion question;
  question.value = *value;
  question.ranks = static_cast<int>(line.group.size());
  question.reductions = reductions;
  question.micro_steps = static_cast<int>(result.window.size());
  if (!add_parts(context, result, weights, question)) return std::nullopt;
  take_precision(line, question);
  return question;
}

std::optional<AuditQuestion> ask_of_shard(const Context& context, const GradientResult& result,
                                          int rank, const WeightTable& weights, int reductions) {
  const ShardRange* range = range_of(context, result, rank);
  if (range == nullptr || range->n == 0) return std::nullopt;
  auto question = ask(context, result, rank, weights, reductions);
  if (question) question->only = {range->offset, range->n};
  return question;
}

WeightTable declared_weights(const Context& context, const GradientResult& result) {
  const PlanLine& line = line_of(context, result);
  return weights_of(result, std::vector<double>(line.group.size(), declared_weight(line)));
}

WeightTable weights_of(const GradientResult& result, std::vector<double> ranks) {
  for (std::size_t r = 0; r < result.factors.size(); ++r) ranks[r] *= result.factors[r];
  return same_weights(result.window.size(), ranks);
}

WeightTable own_weights(const Context& context, const GradientResult& result, int rank,
                        double weight) {
  const auto& group = line_of(context, result).group;
  std::vector<double> ranks(group.size());
  for (std::size_t r = 0; r < group.size(); ++r) ranks[r] = group[r] == rank ? weight : 0;
  return weights_of(result, std::move(ranks));
}

bool passes(const std::optional<AuditQuestion>& question) {
  return question && audit(*question).result == RungResult::pass;
}

int badness(RungResult result) {
  switch (result) {
    case RungResult::fail:
      return 3;
    case RungResult::inconclusive:
      return 2;
    case RungResult::pass:
      return 1;
    default:
      return 0;
  }
}

std::set<TensorId> unrecorded_tensors(const Context& context,
                                      const std::vector<GradientResult>& results) {
  const auto& inventory = context.facts.inventory;
  std::set<TensorId> tensors(inventory.begin(), inventory.end());
  for (const RowKey& key : context.table().rows()) {
    const TensorId tensor{key.model, key.name};
    if (key.stage != Stage::reduced || !tensors.contains(tensor)) continue;
    const auto& group = context.plan.line(tensor).group;
    if (compare_ranks(context.table().entries(key), group).complete()) tensors.erase(tensor);
  }
  for (const GradientResult& result : results) {
    const bool at_final = result.reduced.stage == Stage::final && result.agreement.complete();
    if (at_final) tensors.erase(result.tensor);
  }
  for (const GradientResult& result : results) {
    if (result.unrecorded) tensors.insert(result.tensor);
  }
  return tensors;
}

bool is_due(const Context& context, const StepFacts& step, TensorId tensor) {
  if (step.joined) return false;
  const bool comes =
      !step.micros.empty() || enters_step(context.table(), context.facts, step.step, tensor);
  if (context.input.native) return comes;
  // Backwards after the last optimizer step lead nowhere.
  if (!step.is_taken() || !comes) return false;
  if (has_gradient_record(context.table(), step, tensor)) return true;
  return needs_gradient(context, step.step, tensor);
}

const Entry* find_entry(const EvidenceTable& table, const RowKey& key, int rank) {
  const auto entries = table.entries(key);
  if (static_cast<std::size_t>(rank) >= entries.size()) return nullptr;
  const Entry& entry = entries[static_cast<std::size_t>(rank)];
  return entry.recorded ? &entry : nullptr;
}

}  // namespace gradcheck
