// SPDX-License-Identifier: Apache-2.0
#include "verdict/summary.h"

#include <algorithm>
#include <map>
#include <set>

namespace gradcheck {
namespace {

// One tensor over all steps that an optimizer took.
struct Fate {
  const GradientResult* shown = nullptr;  // the worst step
  bool compared = false, differed = false, wrong = false, unrecorded = false;
  bool absent = true, zero = true, nonfinite = false, proved = false;
  std::array<RungResult, kRungs> rungs;
  std::array<std::string, kRungs> reasons;
  Fate() { rungs.fill(RungResult::not_applicable); }
};

// LOCALS_DISTINCT is about any step at all: one that proves something is enough.
void merge_rung(Fate& fate, const GradientResult& result, std::size_t rung) {
  const bool any_step = static_cast<Rung>(rung) == Rung::locals_distinct;
  const bool passed = fate.rungs[rung] == RungResult::pass;
  const bool takes = any_step && fate.rungs[rung] != RungResult::not_applicable
                         ? !passed && result.rungs[rung] == RungResult::pass
                         : badness(result.rungs[rung]) > badness(fate.rungs[rung]);
  if (!takes && !(fate.shown == nullptr)) return;
  fate.rungs[rung] = result.rungs[rung];
  fate.reasons[rung] = result.reasons[rung];
}

// The step whose row is shown: ranks that differ before wrong values, then by distance.
bool is_worse(const GradientResult& a, const GradientResult& b) {
  if (a.differed != b.differed) return a.differed;
  if (a.wrong != b.wrong) return a.wrong;
  if (a.differed) return a.spread.max_abs.value_or(0) > b.spread.max_abs.value_or(0);
  return a.audit.bound_used.value_or(0) > b.audit.bound_used.value_or(0);
}

// Good properties must hold at every step, bad ones at any.
void merge(Fate& fate, const GradientResult& result) {
  for (std::size_t rung = 0; rung < kRungs; ++rung) merge_rung(fate, result, rung);
  if (fate.shown == nullptr || is_worse(result, *fate.shown)) fate.shown = &result;
  fate.compared |= result.compared;
  fate.differed |= result.differed;
  fate.wrong |= result.wrong;
  fate.absent &= result.absent;
  fate.zero &= result.zero;
  fate.nonfinite |= result.nonfinite;
  fate.proved |= result.proved;
}

using Fates = std::map<TensorId, Fate>;

Fates gather(const std::vector<GradientResult>& results) {
  Fates fates;
  for (const GradientResult& result : results) {
    if (result.used) merge(fates[result.tensor], result);
  }
  return fates;
}

// No fate: its step never came, or no optimizer took it.
void count_tensor(Totals& totals, const Fate* fate, bool unrecorded) {
  ++totals.inventory;
  totals.unrecorded += unrecorded;
  if (fate == nullptr) return;
  totals.compared += fate->compared;
  totals.differed += fate->differed;
  totals.wrong += fate->wrong;
  totals.absent += fate->absent;
  totals.zero += fate->zero;
  totals.nonfinite += fate->nonfinite;
  totals.proved_nothing += !fate->proved;
}

// The largest distance between ranks; unknown as soon as one that differs has none.
void measure_distances(const std::vector<GradientResult>& results, Totals& totals) {
  if (totals.compared == 0) return;
  totals.max_abs = 0;
  totals.max_abs_exact = true;
  bool unknown = false;
  for (const GradientResult& result : results) {
    if (!result.used || !result.differed) continue;
    totals.max_abs_exact &= result.spread.exact;
    unknown |= !result.spread.max_abs;
    totals.max_abs = std::max(*totals.max_abs, result.spread.max_abs.value_or(0));
  }
  if (unknown) totals.max_abs.reset();
}

void measure_bounds(const std::vector<GradientResult>& results,
                    const std::vector<WeightReading>& weights, Totals& totals) {
  for (const GradientResult& result : results) {
    if (!result.used || result.differed || !result.audit.bound_used) continue;
    totals.bound_used = std::max(totals.bound_used.value_or(0), *result.audit.bound_used);
  }
  for (const WeightReading& reading : weights) {
    if (reading.fit.refused) continue;
    totals.smallest_visible_weight =
        std::max(totals.smallest_visible_weight.value_or(0), reading.visible);
  }
}

ModelTotals& model_row(std::vector<ModelTotals>& rows, std::string_view model) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const ModelTotals& row) { return row.model == model; });
  if (found != rows.end()) return *found;
  ModelTotals& row = rows.emplace_back();
  row.model = model;
  return row;
}

void count_model(ModelTotals& row, const Fate* fate, bool unrecorded) {
  ++row.inventory;
  row.unrecorded += unrecorded;
  if (fate == nullptr) return;
  row.compared += fate->compared;
  row.differed += fate->differed;
  row.wrong += fate->wrong;
}

void count_steps(const std::vector<GradientResult>& results, std::vector<StepTotals>& rows) {
  for (const GradientResult& result : results) {
    if (!result.used && !result.unrecorded) continue;
    if (rows.empty() || rows.back().step != result.step) rows.emplace_back().step = result.step;
    StepTotals& row = rows.back();
    row.unrecorded += result.unrecorded;
    if (!result.used) continue;
    row.compared += result.compared;
    row.differed += result.differed;
    row.wrong += result.wrong;
    if (result.spread.max_abs) {
      row.max_abs = std::max(row.max_abs.value_or(0), *result.spread.max_abs);
    }
  }
}

std::vector<RungTotals> count_rungs(const Fates& fates) {
  std::vector<RungTotals> rows;
  for (std::size_t rung = 0; rung < kRungs; ++rung) {
    RungTotals& row = rows.emplace_back();
    row.rung = kRungNames[rung];
    for (const auto& [tensor, fate] : fates) {
      const RungResult result = fate.rungs[rung];
      row.pass += result == RungResult::pass;
      row.fail += result == RungResult::fail;
      row.inconclusive += result == RungResult::inconclusive;
      row.not_applicable += result == RungResult::not_applicable;
      if (row.reason.empty() && result != RungResult::pass) row.reason = fate.reasons[rung];
    }
  }
  rows.back().reason = "no reference run";
  return rows;
}

// "mixed" where ranks disagree even about the state.
std::string state_text(const Context& context, const GradientResult& result) {
  const Entry* first = nullptr;
  for (const int rank : line_of(context, result).group) {
    const Entry* entry = find_entry(context.table(), result.reduced, rank);
    if (entry == nullptr) continue;
    if (first == nullptr) first = entry;
    if (entry->state != first->state) return "mixed";
  }
  return std::string(first == nullptr ? "unrecorded" : name_of(first->state));
}

void describe_entry(const Context& context, const GradientResult& result, TensorRow& row) {
  row.state = state_text(context, result);
  if (result.agreement.present.empty()) return;
  const Entry* entry =
      find_entry(context.table(), result.reduced, result.agreement.present.front());
  row.shape = context.table().shape(entry->shape);
  row.dtype = name_of(entry->dtype);
}

// Flags are over all steps, numbers those of the step shown.
TensorRow row_of(const Context& context, const Fate& fate) {
  const GradientResult& result = *fate.shown;
  TensorRow row;
  row.model = model_of(context, result);
  row.name = name_of(context, result);
  row.step = result.step;
  row.differed = fate.differed;
  row.wrong = fate.wrong;
  row.clusters = cluster_text(result.agreement);
  row.max_abs = result.differed || !result.compared ? result.spread.max_abs : 0;
  row.max_abs_exact = result.differed ? result.spread.exact : row.max_abs.has_value();
  row.differing_elements = result.spread.differing_elements;
  row.sign_of_zero_only = result.spread.sign_of_zero_only;
  row.nan_payload_only = result.spread.nan_payload_only;
  row.bound_used = result.audit.bound_used;
  row.audit = result.audit.how;
  row.weights = result.weights;
  describe_entry(context, result, row);
  for (std::size_t rung = 0; rung < kRungs; ++rung) {
    row.rungs.emplace_back(kRungNames[rung], fate.rungs[rung]);
  }
  return row;
}

// Healthy rows only with -v: a report is read for what is wrong.
void add_row(const Context& context, const Fate& fate, ArmReport& arm) {
  const bool shown =
      fate.differed || fate.wrong || fate.unrecorded || fate.nonfinite || context.input.all_tensors;
  if (!shown) return;
  if (arm.tensors.size() < kReportTensors) {
    arm.tensors.push_back(row_of(context, fate));
  } else {
    ++arm.truncated;
  }
}

std::int64_t bytes_of(const Context& context, const Fate& fate) {
  const Agreement& agreement = fate.shown->agreement;
  if (agreement.present.empty()) return 0;
  const Entry* entry = find_entry(context.table(), fate.shown->reduced, agreement.present.front());
  return static_cast<std::int64_t>(entry->n * size_of(entry->dtype));
}

// Models that run side by side count their steps alike.
void describe_scope(const Context& context, const Fates& fates, Scope& scope) {
  std::set<std::int64_t> steps;
  std::set<Moment> micros;
  for (const ModelFacts& model : context.facts.models) {
    for (const StepFacts& step : model.steps) {
      if (!step.stepped.empty()) steps.insert(step.step);
      for (const MicroFacts& micro : step.micros) micros.insert({step.step, micro.micro});
    }
  }
  scope.steps = static_cast<std::int64_t>(steps.size());
  scope.micro_steps = static_cast<std::int64_t>(micros.size());
  for (const auto& [tensor, fate] : fates) {
    scope.tensors += fate.compared;
    scope.bytes += bytes_of(context, fate);
  }
}

}  // namespace

void summarise(const Context& context, const std::vector<GradientResult>& results,
               const std::vector<WeightReading>& weights, ArmReport& arm) {
  Fates fates = gather(results);
  const auto unrecorded = unrecorded_tensors(context, results);
  for (const TensorId& tensor : context.facts.inventory) {
    const auto found = fates.find(tensor);
    Fate* fate = found == fates.end() ? nullptr : &found->second;
    const bool missing = unrecorded.contains(tensor);
    if (fate != nullptr) fate->unrecorded = missing;
    count_tensor(arm.totals, fate, missing);
    count_model(model_row(arm.models, context.table().text(tensor.model)), fate, missing);
    if (fate != nullptr) add_row(context, *fate, arm);
  }
  measure_distances(results, arm.totals);
  measure_bounds(results, weights, arm.totals);
  count_steps(results, arm.steps);
  arm.rungs = count_rungs(fates);
  describe_scope(context, fates, arm.scope);
}

}  // namespace gradcheck
