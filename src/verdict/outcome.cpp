// SPDX-License-Identifier: Apache-2.0
#include "verdict/outcome.h"

#include <fmt/format.h>

#include <algorithm>

#include "verdict/event_counts.h"
#include "verdict/findings.h"

namespace gradcheck {
namespace {

// GC1xx to GC5xx and GC7xx say that something is wrong; GC6xx and GC8xx that it cannot be said.
bool accuses(const Finding& finding) {
  const int hundred = finding.code / 100;
  return finding.severity == Severity::error && hundred != 6 && hundred != 8;
}

// Something that should have been judged was not. Vacuous tensors are counted elsewhere.
bool is_open(const Context& context, const GradientResult& result) {
  const bool vacuous = !result.proved;
  if (result.sharded && !result.absent && !result.compared) return true;
  const RungResult reduction = result.rung(Rung::reduction_right);
  const bool audited = !is_auditable(line_of(context, result)) || result.absent || vacuous ||
                       result.left_alone || reduction == RungResult::pass;
  const bool agrees = result.rung(Rung::replicas_bitwise) == RungResult::pass ||
                      result.rung(Rung::replicas_bitwise) == RungResult::not_applicable;
  return !result.agreement.complete() || !audited || !agrees;
}

const Finding* first_error(const ArmReport& arm) {
  const auto found = std::find_if(arm.findings.begin(), arm.findings.end(),
                                  [](const Finding& f) { return f.severity == Severity::error; });
  return found == arm.findings.end() ? nullptr : &*found;
}

const Finding* find(const ArmReport& arm, int code) {
  const auto found = std::find_if(arm.findings.begin(), arm.findings.end(),
                                  [code](const Finding& f) { return f.code == code; });
  return found == arm.findings.end() ? nullptr : &*found;
}

// Mixed plans are rare; the first one names the reduction in the headline.
std::string reduction_name(const Context& context) {
  for (const PlanLine& line : context.plan.lines) {
    if (is_auditable(line)) return std::string(name_of(line.reduction));
  }
  return "reduction";
}

// " in 1 of 3 steps" where some steps were right.
std::string in_some_steps(const ArmReport& arm) {
  const auto bad = std::count_if(arm.steps.begin(), arm.steps.end(), [](const StepTotals& step) {
    return step.differed + step.wrong > 0;
  });
  const auto all = static_cast<std::ptrdiff_t>(arm.steps.size());
  return bad == all ? "" : fmt::format(" in {} of {} steps", bad, all);
}

std::string not_reduced_text(const Context& context, const ArmReport& arm, const Finding& finding) {
  return fmt::format(
      "not reduced{}: {}, {}", in_some_steps(arm),
      counted(count_backwards(context, finding.model).all, "backward"),
      counted(count_armed_forwards(context.table(), finding.model), "armed wrapper forward"));
}

std::string wrong_text(const Context& context, const std::vector<GradientResult>& results) {
  const std::string declared = reduction_name(context);
  for (const GradientResult& result : results) {
    if (!result.used || !result.wrong) continue;
    const Diagnosis& d = result.diagnosis;
    const bool alone = context.table().world_size() == 1;
    const std::string equal = alone            ? "the gradient "
                              : result.sharded ? "shards cover it, but "
                                               : "equal bit for bit, but ";
    if (alone && d.code == 209) return "reduced is not the sum of the locals bit for bit";
    if (d.code == 204) return equal + "is " + factor_text(d.factor) + " the declared " + declared;
    if (d.code == 207)
      return equal + ranks_text(d.ranks) + (d.ranks.size() == 1 ? " is" : " are") +
             " missing from the " + declared;
    if (d.code == 205) return equal + "ranks are weighted unlike the declared " + declared;
    if (d.code == 208) return equal + "the reduction made non-finite values";
    return equal + "is not the declared " + declared;
  }
  return {};
}

// Of the first reading that is wrong, with its cause.
std::string log_probs_text(const ArmReport& arm) {
  for (const LogProbArm& judged : arm.logp) {
    if (judged.reading.outcome != Outcome::inconsistent) continue;
    return fmt::format("log-probs '{}' of step {}: {}", judged.name, judged.step,
                       judged.reading.headline);
  }
  return {};
}

// The most specific thing that can be said in one clause.
std::string inconsistent_text(const Context& context, const std::vector<GradientResult>& results,
                              const ArmReport& arm) {
  const Finding* not_reduced = find(arm, 201);
  if (not_reduced != nullptr) return not_reduced_text(context, arm, *not_reduced);
  const Totals& totals = arm.totals;
  if (totals.differed > 0) {
    const std::string counts = fmt::format("{} of {} differ", totals.differed, totals.inventory);
    for (const int code : {202, 203, 206, 103, 102}) {
      const Finding* finding = find(arm, code);
      if (finding != nullptr) return counts + ": " + finding->message;
    }
    return counts + " across ranks";
  }
  const std::string wrong = wrong_text(context, results);
  const Finding* error = first_error(arm);
  const bool by_log_probs = error != nullptr && error->code / 100 == 5;
  if (wrong.empty() && by_log_probs) return log_probs_text(arm);
  return wrong.empty() && error != nullptr ? error->message : wrong;
}

std::string bound_text(const ArmReport& arm) {
  if (!arm.totals.bound_used) return "";
  return fmt::format(" (bound used {:.2g})", *arm.totals.bound_used);
}

// That agreement was not tested is said by the counts beside it.
std::string one_rank_text(const std::vector<GradientResult>& results, const ArmReport& arm) {
  bool exact = true, single = true;
  for (const GradientResult& result : results) {
    if (!result.used || !result.compared) continue;
    exact &= result.exact;
    single &= result.window.size() == 1;
  }
  if (exact && single) return "reduced equals local bit for bit";
  if (exact) return "reduced equals the sum of its micro-steps bit for bit";
  return "reduced is the sum of its micro-steps within rounding, not checked bit for bit" +
         bound_text(arm);
}

// No reduction was judged; what was declared says why.
std::string unjudged_text(const Context& context, const std::vector<GradientResult>& results) {
  bool lossy = false, shared = false;
  for (const PlanLine& line : context.plan.lines) {
    if (line.kind != TensorKind::grad) continue;
    lossy |= line.reduction == Reduction::lossy;
    shared |= line.role == Role::shared || line.role == Role::undeclared;
  }
  std::uint64_t asked = 0, mean = 0, sum = 0;
  for (const GradientResult& result : results) {
    const bool counts = result.fits != Fits::not_asked && is_unknown(line_of(context, result));
    asked += counts;
    mean += counts && result.fits == Fits::mean;
    sum += counts && result.fits == Fits::sum;
  }
  if (asked > 0 && (mean == asked || sum == asked)) {
    return fmt::format("equal bit for bit; {} of the local gradients fits, which nobody declared",
                       mean == asked ? "mean" : "sum");
  }
  if (!shared) return "nothing is declared to agree, and nothing does";
  return lossy ? "equal bit for bit; declared lossy: reduction not judged"
               : "equal bit for bit, undeclared: reduction not judged";
}

std::string consistent_text(const Context& context, const std::vector<GradientResult>& results,
                            const ArmReport& arm) {
  if (context.table().world_size() == 1) return one_rank_text(results, arm);
  const std::string declared = reduction_name(context);
  if (declared == "reduction") return unjudged_text(context, results);
  const bool sharded = std::any_of(results.begin(), results.end(),
                                   [](const GradientResult& result) { return result.sharded; });
  return std::string(sharded ? "put together, the shards are the " : "equal bit for bit; is the ") +
         declared + " of the local gradients" + bound_text(arm);
}

}  // namespace

Outcome decide(const Context& context, const std::vector<GradientResult>& results,
               const ArmReport& arm) {
  if (std::any_of(arm.findings.begin(), arm.findings.end(), accuses)) return Outcome::inconsistent;
  if (first_error(arm) != nullptr) return Outcome::inconclusive;
  const bool none_open = std::none_of(
      results.begin(), results.end(),
      [&](const GradientResult& result) { return result.used && is_open(context, result); });
  const Totals& totals = arm.totals;
  const bool something_proven = totals.compared > 0 && totals.proved_nothing < totals.inventory;
  const bool earned = none_open && something_proven && totals.unrecorded == 0 &&
                      totals.differed == 0 && totals.wrong == 0;
  return earned ? Outcome::consistent : Outcome::inconclusive;
}

std::string headline(const Context& context, const std::vector<GradientResult>& results,
                     const ArmReport& arm) {
  switch (arm.outcome) {
    case Outcome::consistent:
      return consistent_text(context, results, arm);
    case Outcome::inconsistent:
      return inconsistent_text(context, results, arm);
    default:
      break;
  }
  if (find(arm, 602) != nullptr) return "every gradient is zero: nothing proven";
  const Finding* error = first_error(arm);
  if (error == nullptr) return "nothing proven";
  return error->code <= 604 ? "nothing proven: " + error->message : error->message;
}

}  // namespace gradcheck
