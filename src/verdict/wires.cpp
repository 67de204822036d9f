// SPDX-License-Identifier: Apache-2.0
#include "verdict/wires.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "verdict/gradient.h"
#include "verdict/ladder.h"
#include "verdict/reduction.h"

namespace gradcheck {
namespace {

// torch's own say what they do by their names.
constexpr std::string_view kStock = "torch.distributed.algorithms.ddp_comm_hooks.";
constexpr std::string_view kBuiltIn[] = {"allreduce", "fp16_compress"};

bool has_own_hook(const WrapperRecord& wrapper) {
  return wrapper.kind == "ddp" && !wrapper.hook.empty() && wrapper.reduce == "mean" &&
         wrapper.divide == 0 && wrapper.wire_dtype.empty() &&
         !std::string_view(wrapper.hook).starts_with(kStock) &&
         std::find(std::begin(kBuiltIn), std::end(kBuiltIn), wrapper.hook) == std::end(kBuiltIn);
}

Facts only(const Facts& facts, NameId model) {
  Facts some = facts;
  std::erase_if(some.inventory, [model](const TensorId& tensor) { return tensor.model != model; });
  return some;
}

struct Score {
  bool any = false;   // proved something
  bool all = true;    // of those that did are the declared reduction
  bool agree = true;  // ranks do
  double used = 0;    // of the bound, at most

  bool fits() const { return any && all; }
};

// Right gradients use less of the bound from sketches than this; those of bf16 that are taken for
// f16, whose roundings are an eighth, use more.
constexpr double kUsual = 0.15;

Score score(const EvidenceTable& table, const Facts& facts, const Plan& plan) {
  const std::vector<PlanRule> rules;
  const PayloadViews payloads;
  JudgeInput input{table, rules, payloads};
  input.native = false;
  const Context context{input, table, payloads, facts, plan};
  auto results = climb(context);
  judge_weights(context, results);
  Score score;
  for (const GradientResult& result : results) {
    if (!result.used || !result.compared) continue;
    score.agree &= !result.differed;
    const bool passed = result.rung(Rung::reduction_right) == RungResult::pass;
    score.any |= passed && result.proved;
    score.all &= passed || !result.proved;
    score.used = std::max(score.used, result.audit.bound_used.value_or(0));
  }
  return score;
}

Plan with_wire(Plan plan, std::string_view model, DType wire, bool summed) {
  for (PlanLine& line : plan.lines) {
    if (line.model != model || !is_auditable(line)) continue;
    line.wire_dtype = wire;
    if (summed) line.reduction = Reduction::sum;
  }
  return plan;
}

// A hook that also forgets to divide is wrong in any type: the type tells by how much.
std::optional<DType> wire_of(const EvidenceTable& table, const Facts& facts, NameId model,
                             const Plan& plan) {
  for (const bool summed : {false, true}) {
    const auto try_out = [&](DType wire) {
      return score(table, facts, with_wire(plan, table.text(model), wire, summed));
    };
    const Score half = try_out(DType::f16), brain = try_out(DType::bf16);
    if (half.fits() && (half.used <= kUsual || !brain.fits())) return DType::f16;
    if (brain.fits()) return DType::bf16;
  }
  return std::nullopt;
}

void infer_wire(const EvidenceTable& table, const Facts& facts, NameId model, Plan& plan) {
  const Facts some = only(facts, model);
  const Score plain = score(table, some, plan);
  if (plain.all || !plain.agree) return;
  const auto wire = wire_of(table, some, model, plan);
  if (wire) plan = with_wire(std::move(plan), table.text(model), *wire, false);
}

}  // namespace

void infer_wires(const EvidenceTable& table, const Facts& facts, Plan& plan) {
  for (const ModelFacts& model : facts.models) {
    const WrapperRecord* wrapper = wrapper_of(table, table.text(model.model));
    const bool asked = wrapper != nullptr && has_own_hook(*wrapper);
    const bool declared = std::any_of(plan.lines.begin(), plan.lines.end(), [&](const auto& line) {
      return line.model == table.text(model.model) && line.source == PlanSource::declared;
    });
    if (asked && !declared) infer_wire(table, facts, model.model, plan);
  }
}

}  // namespace gradcheck
