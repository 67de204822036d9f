// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "verdict/findings.h"

namespace gradcheck {
namespace {

using enum RungResult;

class Finder {
 public:
  Finder(const Context& context, FindingSet& findings) : context_(context), findings_(findings) {}

  void look_at(const GradientResult& result) {
    presence(result);
    agreement(result);
    finiteness(result);
    reduction(result);
    diagnosis(result);
  }

  // `all` is true where no gradient of the model and step that could have shown a reduction was
  // reduced: then it is one failure (GC201), not many (GC202).
  void not_reduced(const GradientResult& result, bool all) {
    const auto& parts = result.diagnosis.ranks;  // whose parts of a sharded one were not
    add(result, all ? 201 : 202, parts.empty() ? line_of(context_, result).group : parts);
  }

 private:
  void add(const GradientResult& result, int code, std::vector<int> ranks = {},
           std::string detail = {}) {
    findings_.add({code, model_of(context_, result), name_of(context_, result), result.step,
                   std::move(ranks), std::move(detail)});
  }

  // What is not there, and what cannot be compared.
  void presence(const GradientResult& result) {
    const Agreement& a = result.agreement;
    if (!a.absent.empty() && !a.present.empty()) add(result, 102, a.absent);
    if (result.rung(Rung::shape_dtype) == fail) add(result, 103, minority(a));
    if (!result.silent_ranks.empty()) add(result, 603, result.silent_ranks);
  }

  // Undeclared tensors may differ by design: then nothing is proven (GC606), nobody is accused.
  void agreement(const GradientResult& result) {
    if (!result.differed) return;
    const bool undeclared = line_of(context_, result).role == Role::undeclared;
    add(result, undeclared ? 606 : 101, minority(result.agreement));
  }

  // Whose local it was decides: values that arose in no local were made by the reduction.
  void finiteness(const GradientResult& result) {
    if (!result.origin.empty()) {
      add(result, 701, result.origin,
          "first in the local gradients of " + ranks_text(result.origin));
    } else if (result.nonfinite && result.silent_ranks.empty() && !result.unknown_past) {
      add(result, 208);
    } else if (result.nonfinite) {
      add(result, 701);
    }
    if (result.audit.lost > 0) add(result, 209, {}, "non-finite local values vanished");
  }

  // Not judged although it should have been, and no other finding says why.
  void reduction(const GradientResult& result) {
    const bool explained = !result.silent_ranks.empty() || !result.agreement.complete() ||
                           !result.agreement.shapes_equal || result.nonfinite ||
                           !result.origin.empty();
    if (result.rung(Rung::reduction_right) != inconclusive || explained) return;
    add(result, 604, {}, "reduction not judged: " + result.reason(Rung::reduction_right));
  }

  // 201 waits for its neighbours (not_reduced), 208 and lost values were told above.
  void diagnosis(const GradientResult& result) {
    const Diagnosis& d = result.diagnosis;
    if (result.carried_over) add(result, 210);
    if (result.unknown_past) add(result, 210, {}, "from micro-steps that were not recorded");
    if (d.code == 203 || d.code == 211) {
      add(result, d.code, {}, fmt::format("micro-step {}", fmt::join(d.micros, ", ")));
    } else if (d.code == 204) {
      add(result, 204, d.ranks, factor_text(d.factor) + " the declared value");
    } else if (d.code == 206) {
      add(result, 206, {}, cluster_text(result.agreement));
    } else if (d.code != 0 && d.code != 201 && d.code != 208 && result.audit.lost == 0) {
      add(result, d.code, d.ranks);
    }
  }

  const Context& context_;
  FindingSet& findings_;
};

StepOfModel where(const GradientResult& result) { return {result.tensor.model, result.step}; }

// Gradients of a model and step that could have shown a reduction, and that were reduced.
std::map<StepOfModel, int> count_reduced(const std::vector<GradientResult>& results) {
  std::map<StepOfModel, int> reduced;
  for (const GradientResult& result : results) {
    const bool shows = result.used && result.compared && result.proved;
    reduced[where(result)] += shows && result.diagnosis.code != 201 ? 1 : 0;
  }
  return reduced;
}

// Whether an optimizer took them or not: a gradient that was due and is missing is a gap.
void find_unrecorded(const Context& context, const std::vector<GradientResult>& results,
                     FindingSet& findings) {
  const EvidenceTable& table = context.table();
  const auto add = [&](TensorId tensor, std::int64_t step, const std::vector<int>& ranks) {
    findings.add({604, table.text(tensor.model), table.text(tensor.name), step, ranks,
                  "not recorded at `reduced`"});
  };
  auto never = unrecorded_tensors(context, results);
  for (const GradientResult& result : results) {
    if (!result.unrecorded) continue;
    add(result.tensor, result.step, result.agreement.unrecorded);
    never.erase(result.tensor);
  }
  for (const TensorId tensor : never) {
    const auto steps = steps_of(context.facts, tensor.model);
    add(tensor, steps.empty() ? 0 : steps.front().step, {});
  }
}

bool is_any_taken(const Facts& facts) {
  return std::any_of(facts.models.begin(), facts.models.end(), [](const ModelFacts& model) {
    return std::any_of(model.steps.begin(), model.steps.end(),
                       [](const StepFacts& step) { return step.is_taken(); });
  });
}

std::string why_nothing_was_compared(const Facts& facts) {
  bool skipped = is_any_taken(facts);
  for (const ModelFacts& model : facts.models) {
    skipped &= std::all_of(model.steps.begin(), model.steps.end(), [](const StepFacts& step) {
      return skipped_by_all(step) || !step.is_taken();
    });
  }
  return skipped ? "every step was skipped" : "no gradient entered a step";
}

// Ranks that agree on something else than a mean or a sum may well have lost a rank's data. Whoever
// declares the reduction unknown takes that on himself.
void find_unexplained_agreement(const Context& context, const std::vector<GradientResult>& results,
                                FindingSet& findings) {
  for (const GradientResult& result : results) {
    const PlanLine& line = line_of(context, result);
    const bool open = result.used && result.fits == Fits::neither && !result.wrong &&
                      result.diagnosis.code == 0 && line.source != PlanSource::declared;
    if (!open) continue;
    findings.add({604,
                  line.model,
                  line.name,
                  result.step,
                  {},
                  "reduction not judged: ranks agree on neither the mean nor the sum of the local "
                  "gradients; --plan may declare what it is"});
  }
}

// Why nothing was proven although something was compared.
void find_vacuous(const Context& context, const std::vector<GradientResult>& results,
                  FindingSet& findings) {
  bool any = false, proved = false, zero = true, silent = false, compared = false, finite = true;
  for (const GradientResult& result : results) {
    if (!result.used) continue;
    any = true;
    proved |= result.proved;
    silent |= !result.silent_ranks.empty();
    compared |= result.compared;
    finite &= result.origin.empty();
    zero &= result.all_locals_zero && (result.zero || result.absent);
  }
  const bool explained = any_unsupported(context.table());
  if ((!any || !compared) && !explained) {
    findings.say(604, "nothing was compared: " + why_nothing_was_compared(context.facts));
  }
  if (!any || proved || silent) return;
  if (zero) {
    findings.say(602, "every gradient is zero on every rank");
  } else if (finite && !findings.has(601) && context.table().world_size() > 1) {
    findings.say(601, "the local gradients are equal on every rank, so agreement proves nothing");
  }
}

}  // namespace

void find_in_gradients(const Context& context, const std::vector<GradientResult>& results,
                       FindingSet& findings) {
  Finder finder(context, findings);
  auto reduced = count_reduced(results);
  for (const GradientResult& result : results) {
    if (!result.used) continue;
    finder.look_at(result);
    if (result.diagnosis.code == 201) finder.not_reduced(result, reduced[where(result)] == 0);
  }
  find_unrecorded(context, results, findings);
  if (context.table().world_size() > 1) find_unexplained_agreement(context, results, findings);
  find_vacuous(context, results, findings);
}

}  // namespace gradcheck
