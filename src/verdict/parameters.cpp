// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "verdict/sides.h"

namespace gradcheck {
namespace {

// Where an update can be smaller than half a unit of every weight, not moving is no failure.
constexpr double kCoarse = 0x1p-20;
constexpr const char* kBelowResolution = "the update may be below the type's resolution";

class Parameters {
 public:
  Parameters(const Context& context, FindingSet& findings)
      : context_(context), findings_(findings) {}

  void judge(const PlanLine& line, TensorId tensor, bool had_gradient) {
    line_ = &line;
    tensor_ = tensor;
    const auto keys = moments();
    auto first = keys.begin();
    if (!context_.table().has(*first)) {
      // A parameter that a job adds later begins where it is first recorded.
      if (!comes_later()) return unrecorded(*first);
      first = std::find_if(keys.begin(), keys.end(),
                           [this](const RowKey& key) { return context_.table().has(key); });
      if (first == keys.end()) return unrecorded(keys.front());
    }
    ++totals_.compared;
    if (differs(*first)) {
      ++totals_.differed_at_start;
      disagree(301, *first);
    }
    follow({first, keys.end()}, had_gradient);
    if (!context_.input.native) look_behind_steps();
  }

  SideTotals totals() const { return totals_; }

 private:
  void add(int code, std::int64_t step, std::vector<int> ranks = {}, std::string detail = {}) {
    findings_.add({code, line_->model, line_->name, step, std::move(ranks), std::move(detail)});
  }

  Agreement compare(const RowKey& key) const {
    return compare_ranks(context_.table().entries(key), line_->group);
  }

  // A row that some rank did not record is an omission, and no difference.
  bool differs(const RowKey& key) {
    const Agreement agreement = compare(key);
    if (!agreement.complete()) unrecorded(key);
    return !agreement.equal() && !may_differ();
  }

  // A wrapper whose ranks own parts keeps the parameters whole, or as parts that make a whole.
  bool may_differ() const {
    return line_->role == Role::rank_local || (line_->role == Role::sharded && !owns_shards());
  }

  bool owns_shards() const {
    const WrapperRecord* wrapper = wrapper_of(context_.table(), line_->model);
    return wrapper != nullptr && wrapper->shards;
  }

  // Undeclared ones may differ by design: nobody is accused, and nothing is proven.
  void disagree(int code, const RowKey& key) {
    if (!line_->tied_to.empty()) return;  // its owner is named: one storage, one difference
    const bool declared = is_declared_shared(*line_) || line_->role == Role::sharded;
    if (declared) return add(code, key.step, minority(compare(key)));
    add(606, key.step, minority(compare(key)),
        "parameters at `" + std::string(name_of(key.stage)) + "`");
  }

  void unrecorded(const RowKey& key) {
    ++totals_.unrecorded;
    add(604, key.step, compare(key).unrecorded,
        "parameters not recorded at `" + std::string(name_of(key.stage)) + "`");
  }

  // `start` of the first step and, in jobs, of every step that follows unrecorded ones; `after` of
  // every step that an optimizer took.
  std::vector<RowKey> moments() const {
    const auto steps = steps_of(context_.facts, tensor_.model);
    std::vector<RowKey> keys;
    const auto add_key = [&](const Moment& moment, Stage stage) {
      keys.push_back(row_key(tensor_, moment, stage, TensorKind::param));
    };
    if (steps.empty()) add_key({0, 0}, Stage::start);
    for (const StepFacts& step : steps) {
      const bool opens = !context_.input.native && step.opens_afresh && step.is_taken();
      if (keys.empty() || (opens && !step.joined)) add_key({step.step, 0}, Stage::start);
      if (!step.stepped.empty() && !step.joined) {
        add_key({step.step, step.last_micro()}, Stage::after);
      }
    }
    return keys;
  }

  // In a job, and not trained in the step in which the model was first recorded.
  bool comes_later() const {
    const auto steps = steps_of(context_.facts, tensor_.model);
    return !context_.input.native && !steps.empty() && !is_due(context_, steps.front(), tensor_);
  }

  // Each moment against the one before it.
  void follow(std::span<const RowKey> keys, bool had_gradient) {
    bool moved = false, followed = false, differed = false;
    RowKey before = keys.front();
    for (const RowKey& key : keys.subspan(1)) {
      if (!context_.table().has(key)) {
        if (line_->kind == TensorKind::grad) unrecorded(key);
        continue;
      }
      followed = true;
      moved |= has_moved(before, key);
      if (differs(key)) {
        differed = true;
        disagree(302, key);
      }
      before = key;
    }
    totals_.differed_after += differed;
    totals_.moved += moved;
    if (followed) judge_motion(before, moved, had_gradient);
  }

  // What a job's gradients were made at, in steps whose predecessor was recorded too: weights that
  // parted since then, and were put back before anybody looked at them again.
  void look_behind_steps() {
    if (may_differ()) return;
    const StepFacts* before = nullptr;
    for (const StepFacts& step : steps_of(context_.facts, tensor_.model)) {
      const RowKey now = row_key(tensor_, {step.step, 0}, Stage::start, TensorKind::param);
      if (before != nullptr && !step.opens_afresh && step.is_taken() && !step.joined) {
        const RowKey then =
            row_key(tensor_, {before->step, before->last_micro()}, Stage::after, TensorKind::param);
        const bool parted = compare(then).equal() && !compare(now).equal();
        if (parted && line_->tied_to.empty()) {
          add(604, step.step, minority(compare(now)),
              "gradients were made at other weights on some ranks than after the step before");
        }
      }
      before = &step;
    }
  }

  // On any rank; ranks that disagree about it differ after the step, which is GC302.
  bool has_moved(const RowKey& before, const RowKey& after) const {
    return std::any_of(line_->group.begin(), line_->group.end(), [&](int rank) {
      const Entry* a = find_entry(context_.table(), before, rank);
      const Entry* b = find_entry(context_.table(), after, rank);
      return a != nullptr && b != nullptr && a->digest != b->digest;
    });
  }

  // Moving at any step is moving: a warm-up may well begin with a learning rate of zero.
  void judge_motion(const RowKey& last, bool moved, bool had_gradient) {
    if (line_->role == Role::frozen && moved) add(304, last.step);
    if (line_->kind != TensorKind::grad || line_->role == Role::frozen) return;
    if (moved || !had_gradient) return;
    const Entry* entry = find_entry(context_.table(), last, line_->group.front());
    const bool coarse =
        entry != nullptr && is_measured(entry->dtype) && unit_roundoff(entry->dtype) > kCoarse;
    add(303, last.step, {}, coarse ? kBelowResolution : "");
    findings_.soften(303, kBelowResolution, Severity::note);
    // A job's optimizer was seen to take it: in the few steps that are checked the learning rate
    // may be zero, or the gradient mere rounding noise (a bias that feeds a batch norm).
    if (!context_.input.native) findings_.soften(303, "", Severity::note);
  }

  const Context& context_;
  FindingSet& findings_;
  const PlanLine* line_ = nullptr;
  TensorId tensor_;
  SideTotals totals_;
};

std::set<TensorId> with_gradient(const std::vector<GradientResult>& results) {
  std::set<TensorId> tensors;
  for (const GradientResult& result : results) {
    if (result.used && !result.absent && !result.zero && result.agreement.complete()) {
      tensors.insert(result.tensor);
    }
  }
  return tensors;
}

}  // namespace

SideTotals judge_parameters(const Context& context, const std::vector<GradientResult>& results,
                            FindingSet& findings) {
  Parameters parameters(context, findings);
  const auto had_gradient = with_gradient(results);
  const bool any_steps = std::any_of(context.facts.models.begin(), context.facts.models.end(),
                                     [](const ModelFacts& model) { return !model.steps.empty(); });
  std::vector<TensorId> order(context.plan.lines.size());
  for (const auto& [tensor, index] : context.plan.index) order[index] = tensor;
  for (const TensorId& tensor : order) {
    const PlanLine& line = context.plan.line(tensor);
    if (line.kind == TensorKind::buffer || !any_steps) continue;
    if (is_unsupported(context.table(), line.model)) continue;
    parameters.judge(line, tensor, had_gradient.contains(tensor));
  }
  return parameters.totals();
}

}  // namespace gradcheck
