// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "verdict/hand_scaling.h"
#include "verdict/sides.h"
#include "verdict/witness.h"

namespace gradcheck {
namespace {

// A factor rounds itself where it is made; clip_grad_norm_ adds as much to the norm
// (torch/nn/utils/clip_grad.py).
constexpr double kMaking = 1e-6;

struct Scaling {
  double factor = 0;
  double residual = 0;  // ‖final − factor·reduced‖ / ‖final‖, from sketches
};

// The factor that fits best, and how badly it fits.
std::optional<Scaling> scaling_between(const EvidenceTable& table, const Entry& reduced,
                                       const Entry& final) {
  const Sketch* from = table.sketch(reduced);
  const Sketch* to = table.sketch(final);
  if (from == nullptr || to == nullptr) return std::nullopt;
  double overlap = 0, square = 0, whole = 0, rest = 0;
  for (std::size_t k = 0; k < from->size(); ++k) {
    overlap += (*from)[k] * (*to)[k];
    square += (*from)[k] * (*from)[k];
    whole += (*to)[k] * (*to)[k];
  }
  if (!(square > 0) || !(whole > 0)) return std::nullopt;
  const double factor = overlap / square;
  for (std::size_t k = 0; k < from->size(); ++k) {
    const double gap = (*to)[k] - factor * (*from)[k];
    rest += gap * gap;
  }
  return Scaling{factor, std::sqrt(rest / whole)};
}

class Finals {
 public:
  Finals(const Context& context, FindingSet& findings, std::vector<std::string>& notes)
      : context_(context), findings_(findings), notes_(notes) {}

  void judge(const GradientResult& result) {
    result_ = &result;
    const PlanLine& line = line_of(context_, result);
    const Moment last{result.step, result.reduced.micro};
    const RowKey key = row_key(result.tensor, last, Stage::final);
    const Agreement agreement = compare_ranks(context_.table().entries(key), line.group);
    if (!agreement.complete()) {
      ++totals_.unrecorded;
      return add(604, agreement.unrecorded, "not recorded at `final`");
    }
    ++totals_.compared;
    const bool should_agree = line.role == Role::shared || line.role == Role::undeclared;
    if (should_agree && !agreement.equal()) {
      ++totals_.differed_after;
      const int code = line.role == Role::undeclared ? 606 : 101;
      if (!result.differed) {
        add(code, ranks_that_edited(context_, result), "at `final`, though equal at `reduced`");
      }
    }
    if (was_cleared(key, line)) {
      return add(604, {}, "gradients were cleared between the backward and the optimizer step");
    }
    judge_absence(agreement, line.role);
    UnseenFactor factors{&result, {}, 0};
    for (const int rank : line.group) {
      factors.factors.push_back(1);
      judge_change(key, rank, factors);
    }
    if (!result.zero) scaling_.add(std::move(factors));
  }

  void settle_factors() {
    for (const UnseenFactor& gradient : scaling_.settle(context_, notes_)) {
      result_ = gradient.result;
      const auto& group = line_of(context_, *result_).group;
      for (std::size_t r = 0; r < group.size(); ++r) {
        const double factor = gradient.factors[r];
        if (factor == 1) continue;
        const std::string what = factor_text(factor) + " between `reduced` and `final`";
        if (gradient.is_undecided) {
          add(604, {}, what + " of the only step: clipping and a constant factor look alike");
        } else {
          add(204, {group[r]}, what);
        }
      }
    }
  }

  SideTotals totals() const { return totals_; }

  void note_changes() const {
    if (reshaped_ > 0) {
      notes_.push_back(fmt::format("{} {} changed element by element between reduction and step",
                                   counted(reshaped_, "gradient"),
                                   reshaped_ == 1 ? "was" : "were"));
    }
  }

 private:
  void add(int code, std::vector<int> ranks, std::string detail) {
    findings_.add({code, model_of(context_, *result_), name_of(context_, *result_), result_->step,
                   std::move(ranks), std::move(detail)});
  }

  // Dropped between reduction and step: on some ranks they part; on all nobody knows why.
  void judge_absence(const Agreement& agreement, Role role) {
    std::vector<int> dropped;
    for (const int rank : agreement.absent) {
      const Entry* reduced = find_entry(context_.table(), result_->reduced, rank);
      if (reduced != nullptr && reduced->state != TensorState::absent) dropped.push_back(rank);
    }
    if (dropped.empty()) return;
    const bool accuses = !agreement.present.empty() && role != Role::undeclared;
    add(accuses ? 102 : 604, dropped, "absent at `final`, though present at `reduced`");
  }

  static bool is_nothing(const Entry& entry) {
    return entry.state == TensorState::zero || entry.state == TensorState::absent;
  }

  // On every rank there was a gradient, and there is none any more. Clipping to nothing is another
  // thing.
  bool was_cleared(const RowKey& key, const PlanLine& line) const {
    return std::all_of(line.group.begin(), line.group.end(), [&](int rank) {
      const Entry* final = find_entry(context_.table(), key, rank);
      const Entry* reduced = find_entry(context_.table(), result_->reduced, rank);
      return final != nullptr && reduced != nullptr && is_nothing(*final) &&
             !is_nothing(*reduced) &&
             witnessed(context_, result_->tensor, result_->step, rank).product() != 0;
    });
  }

  static bool is_finite(const Entry& entry) {
    return entry.state == TensorState::finite || entry.state == TensorState::zero;
  }

  // A gradient that was not finite before has its own findings; a factor cannot be read from it.
  void judge_change(const RowKey& key, int rank, UnseenFactor& factors) {
    const Entry* final = find_entry(context_.table(), key, rank);
    const Entry* reduced = find_entry(context_.table(), result_->reduced, rank);
    if (final == nullptr || reduced == nullptr || final->state == TensorState::absent) return;
    const bool untouched = final->digest == reduced->digest && final->dtype == reduced->dtype;
    if (untouched || reduced->state == TensorState::nonfinite) return;
    // Clipped to nothing: a zero tells no other factor.
    const bool zeroed = final->state == TensorState::zero || final->l2 == 0;
    if (zeroed && final->measured &&
        witnessed(context_, result_->tensor, result_->step, rank).product() == 0) {
      return;
    }
    if (final->state == TensorState::nonfinite && is_finite(*reduced)) {
      return add(701, {rank}, "at `final`, though finite at `reduced`");
    }
    const auto scaling = scaling_between(context_.table(), *reduced, *final);
    if (!scaling) return add(604, {rank}, "changed between `reduced` and `final`, how is unknown");
    judge_scaling(*scaling, *final, rank, factors);
  }

  void judge_scaling(const Scaling& scaling, const Entry& final, int rank, UnseenFactor& factors) {
    const double u = is_measured(final.dtype) ? unit_roundoff(final.dtype) : 0;
    // A factor rounds every element once, itself once, and its making a few times more.
    const double slack = 4 * u + kMaking;
    if (!(scaling.residual <= slack)) {
      reshaped_ += rank == line_of(context_, *result_).group.front();
      return;
    }
    const double seen = witnessed(context_, result_->tensor, result_->step, rank).product();
    const bool explained = std::abs(scaling.factor - seen) <= slack * std::abs(seen);
    if (explained) return;
    factors.factors.back() = scaling.factor;
    factors.slack = slack;
  }

  const Context& context_;
  FindingSet& findings_;
  std::vector<std::string>& notes_;
  const GradientResult* result_ = nullptr;
  SideTotals totals_;
  std::uint64_t reshaped_ = 0;
  HandScaling scaling_;
};

}  // namespace

SideTotals judge_finals(const Context& context, const std::vector<GradientResult>& results,
                        FindingSet& findings, std::vector<std::string>& notes) {
  Finals finals(context, findings, notes);
  for (const GradientResult& result : results) {
    if (result.used && !result.absent) finals.judge(result);
  }
  finals.settle_factors();
  finals.note_changes();
  return finals.totals();
}

}  // namespace gradcheck
