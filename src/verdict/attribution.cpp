// SPDX-License-Identifier: Apache-2.0
#include "verdict/attribution.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "verdict/micro_fit.h"
#include "verdict/reduction.h"
#include "verdict/unknown_reduction.h"
#include "verdict/wrong_shards.h"

namespace gradcheck {
namespace {

using Members = std::vector<GradientResult*>;

// Weights closer than this count as equal when a wrong reduction is given a name. It judges
// nothing: that the weights are wrong is known by then.
constexpr double kSameWeight = 0.01;

bool near(double a, double b, double slack) { return std::abs(a - b) <= slack; }

// --- ranks differ

// Equal digests settle it for one micro-step; several are added up and may round. A reducer whose
// collective did nothing leaves the rank its own share, already divided.
bool holds_own(const Context& context, const GradientResult& result, int rank) {
  const double declared = declared_weight(line_of(context, result));
  const Entry* value = find_entry(context.table(), result.reduced, rank);
  if (value != nullptr && result.window.size() == 1) {
    const RowKey key = row_key(result.tensor, result.window.front(), Stage::local);
    const Entry* local = find_entry(context.table(), key, rank);
    if (local != nullptr && local->state != TensorState::absent &&
        value->state != TensorState::absent && local->digest == value->digest) {
      return true;
    }
  }
  return passes(ask(context, result, rank, own_weights(context, result, rank, 1), 0)) ||
         passes(ask(context, result, rank, own_weights(context, result, rank, declared), 1));
}

// One rank that holds another value is enough: then something was reduced.
bool never_reduced(const Context& context, const GradientResult& result) {
  const auto& group = line_of(context, result).group;
  return std::all_of(group.begin(), group.end(),
                     [&](int rank) { return holds_own(context, result, rank); });
}

// Is the value of these ranks the weighted sum of their own locals and nobody else's?
bool is_reduced_over(const Context& context, const GradientResult& result,
                     const std::vector<int>& ranks, double weight) {
  const auto& group = line_of(context, result).group;
  std::vector<double> weights;
  for (const int rank : group) {
    const bool inside = std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
    weights.push_back(inside ? weight : 0);
  }
  return passes(ask(context, result, ranks.front(), same_weights(result.window.size(), weights),
                    result.reductions));
}

// The wrapper divides by its own group, or by the world that it believes in: both occur.
bool over_sub_groups(const Context& context, const GradientResult& result) {
  const auto& clusters = result.agreement.clusters;
  const double declared = declared_weight(line_of(context, result));
  return std::all_of(clusters.begin(), clusters.end(), [&](const std::vector<int>& ranks) {
    const double mean = 1 / static_cast<double>(ranks.size());
    return is_reduced_over(context, result, ranks, mean) ||
           is_reduced_over(context, result, ranks, declared);
  });
}

// Asked per tensor, because tensors of one model may escape in different ways.
void diagnose_difference(const Context& context, GradientResult& result) {
  if (!result.silent_ranks.empty() || !result.agreement.complete()) return;
  if (!result.agreement.shapes_equal) return;
  if (never_reduced(context, result)) {
    result.diagnosis.code = 201;
  } else if (over_sub_groups(context, result)) {
    result.diagnosis.code = 206;
  }
}

// --- ranks agree on something else

// The fitted weights leave no more than rounding unexplained; otherwise they mean nothing.
bool explains(const Fit& fit, double gamma) {
  return !fit.refused && fit.residual <= 3 * gamma + 1e-9;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// What can be told apart from a weight: its allowance, or a round share of it.
double slack_of(const Fit& fit, std::size_t r, double weight, const WeightRounding& rounding) {
  return std::max(allowance(fit, r, weight, rounding), kSameWeight * std::abs(weight));
}

// A weight that can be told from its declared value, but not from zero.
std::vector<int> ranks_without_weight(const Fit& fit, const std::vector<int>& group,
                                      double declared, const WeightRounding& rounding) {
  std::vector<int> ranks;
  for (std::size_t r = 0; r < group.size(); ++r) {
    const double slack = slack_of(fit, r, declared, rounding);
    const bool off = !near(fit.weights[r], declared, slack);
    if (off && near(fit.weights[r], 0, slack)) ranks.push_back(group[r]);
  }
  return ranks;
}

std::vector<int> ranks_off(const Fit& fit, const std::vector<int>& group, double declared,
                           const WeightRounding& rounding) {
  std::vector<int> ranks;
  for (std::size_t r = 0; r < group.size(); ++r) {
    if (!near(fit.weights[r], declared, slack_of(fit, r, declared, rounding))) {
      ranks.push_back(group[r]);
    }
  }
  return ranks;
}

// Equal weights before lost ones: a factor of zero would be both, and is a factor.
Diagnosis name_weights(const Fit& fit, const std::vector<int>& group, double declared,
                       const WeightRounding& rounding) {
  Diagnosis diagnosis;
  const double mean = mean_of(fit.weights);
  bool equal = true;
  for (std::size_t r = 0; r < group.size(); ++r) {
    equal &= near(fit.weights[r], mean, slack_of(fit, r, mean, rounding));
  }
  const auto lost = ranks_without_weight(fit, group, declared, rounding);
  const auto off = ranks_off(fit, group, declared, rounding);
  if (equal && !off.empty()) {
    diagnosis.code = 204;
    diagnosis.factor = mean / declared;
  } else if (!lost.empty() && lost.size() < group.size()) {
    diagnosis.code = 207;
    diagnosis.ranks = lost;
  } else if (!off.empty()) {
    diagnosis.code = 205;
    diagnosis.ranks = off;
  }
  return diagnosis;
}

// All tensors of a plan together: what one tensor cannot show, three hundred do.
bool diagnose_weights(const Context& context, const Members& members) {
  const GradientResult& first = *members.front();
  const PlanLine& line = line_of(context, first);
  const std::vector<const GradientResult*> stacked(members.begin(), members.end());
  const std::vector<double> guess(line.group.size(), declared_weight(line));
  const Fit found = fit(rank_stack(context, stacked, line.group.front()), guess);
  const WeightRounding rounding = weight_rounding(context, first);
  if (!explains(found, rounding.gamma)) return false;
  const Diagnosis diagnosis = name_weights(found, line.group, declared_weight(line), rounding);
  for (GradientResult* member : members) {
    member->weights = found.weights;
    if (diagnosis.code != 0) member->diagnosis = diagnosis;
  }
  return diagnosis.code != 0;
}

// One factor for one tensor: α = ⟨f, e⟩ / ⟨e, e⟩ over sketches, e the declared value.
void diagnose_factor(const Context& context, GradientResult& member) {
  const auto& group = line_of(context, member).group;
  const auto question =
      ask(context, member, group.front(), declared_weights(context, member), member.reductions);
  if (!question || question->value.sketch == nullptr) return;
  // Wrong by bits only, or by its weights: then no factor is to blame.
  if (audit(*question).result == RungResult::pass) return;
  double overlap = 0, square = 0;
  Sketch expected{};
  for (const Part& part : question->parts) {
    if (part.sketch == nullptr) continue;
    for (std::size_t k = 0; k < expected.size(); ++k) {
      expected[k] += part.weight * (*part.sketch)[k];
    }
  }
  for (std::size_t k = 0; k < expected.size(); ++k) {
    overlap += expected[k] * (*question->value.sketch)[k];
    square += expected[k] * expected[k];
  }
  if (!(square > 0)) return;
  AuditQuestion scaled = *question;
  for (Part& part : scaled.parts) part.weight *= overlap / square;
  if (audit(scaled).result == RungResult::pass) {
    member.diagnosis.code = 204;
    member.diagnosis.factor = overlap / square;
  }
}

// Ranks that each clipped by their own norm before the reduction.
void diagnose_clipping(const Context& context, GradientResult& member) {
  if (!is_clipped_by_rank(context, member, declared_weight(line_of(context, member)))) return;
  member.diagnosis.code = 205;
}

// The simplest explanation first: what was seen, one set of weights for all, a factor of each,
// micro-steps.
void diagnose_agreeing(const Context& context, const Members& all) {
  Members members, unnamed;
  for (GradientResult* member : all) {
    diagnose_clipping(context, *member);
    if (member->sharded && member->diagnosis.code == 0) diagnose_shards(context, *member);
    if (member->diagnosis.code == 0) members.push_back(member);
  }
  if (members.empty() || diagnose_weights(context, members)) return;
  for (GradientResult* member : members) {
    diagnose_factor(context, *member);
    if (member->diagnosis.code == 0) unnamed.push_back(member);
  }
  diagnose_micro_steps(context, unnamed);
}

void diagnose_differing(const Context& context, const Members& members) {
  Members unnamed;
  for (GradientResult* member : members) {
    diagnose_difference(context, *member);
    const bool auditable = is_auditable(line_of(context, *member));
    if (member->diagnosis.code == 0 && auditable) unnamed.push_back(member);
  }
  diagnose_micro_steps(context, unnamed);
}

// Gradients that one cause can explain together.
using Key = std::tuple<std::int64_t, NameId, std::vector<int>, std::vector<Moment>, bool>;

bool needs_name(const GradientResult& result) {
  return result.used && (result.differed || result.wrong) && result.diagnosis.code == 0;
}

// That ranks kept their own can be told whatever the reduction should have been.
bool can_be_named(const PlanLine& line, bool differed) {
  const bool reduced = line.role == Role::shared && line.reduction != Reduction::none;
  return is_auditable(line) || (differed && reduced);
}

}  // namespace

void attribute(const Context& context, std::vector<GradientResult>& results) {
  std::map<Key, Members> sets;
  for (GradientResult& result : results) {
    const PlanLine& line = line_of(context, result);
    if (!needs_name(result) || !can_be_named(line, result.differed)) continue;
    sets[{result.step, result.tensor.model, line.group, result.window, result.differed}].push_back(
        &result);
  }
  for (const auto& [key, members] : sets) {
    const bool differed = members.front()->differed;
    (differed ? diagnose_differing : diagnose_agreeing)(context, members);
  }
  for (GradientResult& result : results) {
    if (needs_name(result) && result.wrong) result.diagnosis.code = 209;
  }
}

}  // namespace gradcheck
