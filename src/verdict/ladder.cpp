// SPDX-License-Identifier: Apache-2.0
#include "verdict/ladder.h"

#include <algorithm>

#include "verdict/exact_sum.h"
#include "verdict/witness.h"

namespace gradcheck {
namespace {

using enum RungResult;

RungResult verdict_of(bool ok) { return ok ? pass : fail; }

bool is_zero_or_absent(const Entry& entry) {
  return entry.state == TensorState::zero || entry.state == TensorState::absent;
}

bool has_nonfinite(const Entry& entry) { return entry.state == TensorState::nonfinite; }

class Climber {
 public:
  Climber(const Context& context, const StepFacts& step, TensorId tensor)
      : context_(context), step_(step), line_(context.plan.line(tensor)) {
    result_.tensor = tensor;
    result_.step = step.step;
    result_.reduced = row_key(tensor, {step.step, step.last_micro()}, Stage::reduced);
    const auto window = context.facts.windows.find({step.step, tensor});
    if (window != context.facts.windows.end()) window_ = &window->second;
    result_.used = enters_step(context.table(), context.facts, step.step, tensor) && !step.joined &&
                   !(window_ != nullptr && window_->cleared);
    const bool known = window_ != nullptr && !window_->own.empty();
    use_window(known ? window_->own : own_window(step));
  }

  GradientResult climb() {
    use_value(result_.reduced);
    if (!context_.input.native) look_at_final();
    result_.unrecorded = !result_.agreement.complete() && is_due(context_, step_, result_.tensor);
    result_.used &= result_.unrecorded || !result_.agreement.clusters.empty();
    read_locals();
    result_.left_alone = is_left_alone();
    if (result_.left_alone) return std::move(result_);
    present();
    shape_dtype();
    finite();
    locals_distinct();
    replicas_bitwise();
    reduction_right();
    conclude();
    return std::move(result_);
  }

 private:
  const Entry& entry(int rank) const { return entries_[static_cast<std::size_t>(rank)]; }
  // Of tensors that are declared sharded nobody knows which part a rank holds, unless its records
  // say so or its wrapper promised that they do.
  bool is_left_alone() const {
    if (line_.role == Role::frozen) return true;
    if (line_.role != Role::sharded || result_.sharded) return false;
    const WrapperRecord* wrapper = wrapper_of(context_.table(), line_.model);
    return wrapper == nullptr || !wrapper->shards;
  }

  bool alone() const { return line_.group.size() < 2; }

  void use_window(std::vector<Moment> window) {
    result_.window = std::move(window);
    result_.reductions = reductions_in(context_.facts, result_.tensor.model, result_.window);
  }

  void use_value(const RowKey& key) {
    result_.reduced = key;
    entries_ = context_.table().entries(key);
    result_.agreement = compare_ranks(entries_, line_.group);
    result_.sharded = std::any_of(entries_.begin(), entries_.end(), is_shard);
  }

  // Ranks that part at `reduced` and agree at `final` were reduced in between, by hand. Gradients
  // that no backward brought are at `final` only.
  void look_at_final() {
    const RowKey reduced = result_.reduced;
    const Agreement before = result_.agreement;
    const RowKey final = row_key(result_.tensor, {step_.step, step_.last_micro()}, Stage::final);
    const Agreement after = compare_ranks(context_.table().entries(final), line_.group);
    if (!after.complete() || after.present.empty()) return;
    const bool brought = !step_.micros.empty() || context_.table().has(reduced);
    const bool reduced_later = before.complete() && !before.equal() && after.equal();
    if (brought && !reduced_later) return;
    use_value(final);
    see_factors();
  }

  // Unequal clipping is no factor of the reduction: it was done before, by each rank alone.
  void see_factors() {
    std::vector<double> unscales, clips;
    for (const int rank : line_.group) {
      const Witnessed seen = witnessed(context_, result_.tensor, step_.step, rank);
      unscales.push_back(seen.unscale);
      clips.push_back(seen.clip);
    }
    if (are_equal_factors(clips)) {
      for (std::size_t r = 0; r < clips.size(); ++r) unscales[r] *= clips[r];
    } else {
      result_.clips = std::move(clips);
    }
    const bool all_one =
        std::all_of(unscales.begin(), unscales.end(), [](double factor) { return factor == 1; });
    if (!all_one) result_.factors = std::move(unscales);
  }

  void read_locals() {
    result_.all_locals_zero = true;
    for (const Moment& moment : result_.window) read_local(moment);
  }

  // A micro-step proves something if its locals are known, not all zero and not all equal.
  void read_local(const Moment& moment) {
    const auto locals = context_.table().entries(row_key(result_.tensor, moment, Stage::local));
    const Agreement agreement = compare_ranks(locals, line_.group);
    merge(result_.silent_ranks, agreement.unrecorded);
    bool zero = true;
    for (const int rank : line_.group) {
      const auto at = static_cast<std::size_t>(rank);
      if (at >= locals.size() || !locals[at].recorded) continue;
      const Entry& local = locals[at];
      zero &= is_zero_or_absent(local);
      if (has_nonfinite(local)) merge(result_.origin, {rank});
    }
    result_.all_locals_zero &= zero;
    result_.proved |= !zero && agreement.complete() && (alone() || !agreement.equal());
  }

  static void merge(std::vector<int>& into, const std::vector<int>& ranks) {
    into.insert(into.end(), ranks.begin(), ranks.end());
    std::sort(into.begin(), into.end());
    into.erase(std::unique(into.begin(), into.end()), into.end());
  }

  // Absent everywhere is a parameter that took no part, not a failure; absent somewhere is one.
  void present() {
    const Agreement& a = result_.agreement;
    result_.absent = a.complete() && a.present.empty();
    if (!a.complete()) return result_.set(Rung::present, inconclusive, "not recorded on some rank");
    if (result_.absent) {
      return result_.set(Rung::present, not_applicable, "absent on every rank");
    }
    result_.set(Rung::present, verdict_of(a.absent.empty()));
  }

  void shape_dtype() {
    const Agreement& a = result_.agreement;
    if (a.present.size() < 2) return;
    result_.set(Rung::shape_dtype, verdict_of(a.shapes_equal));
  }

  // A local that is not finite fails the rung too, whatever became of it in the reduction.
  void finite() {
    const Agreement& a = result_.agreement;
    if (a.present.empty()) return;
    result_.nonfinite = std::any_of(a.present.begin(), a.present.end(),
                                    [this](int rank) { return has_nonfinite(entry(rank)); });
    result_.zero = std::all_of(a.present.begin(), a.present.end(),
                               [this](int rank) { return entry(rank).state == TensorState::zero; });
    result_.set(Rung::finite, verdict_of(!result_.nonfinite && result_.origin.empty()));
  }

  void locals_distinct() {
    if (!result_.silent_ranks.empty()) {
      return result_.set(Rung::locals_distinct, inconclusive, "local gradients not recorded");
    }
    if (result_.proved) return result_.set(Rung::locals_distinct, pass);
    result_.set(Rung::locals_distinct, inconclusive,
                result_.all_locals_zero ? "zero on every rank" : "equal on every rank");
  }

  // No tolerance: an all-reduce hands one result to all ranks, bit for bit. Gloo and NCCL's rings
  // and trees finish each chunk in one place, then copy it (gloo/allreduce.cc, NCCL all_reduce.h).
  void replicas_bitwise() {
    const Agreement& a = result_.agreement;
    if (alone()) return result_.set(Rung::replicas_bitwise, not_applicable, "one rank");
    if (result_.absent || a.clusters.empty()) return;
    if (result_.sharded && a.complete() && a.absent.empty()) {
      return result_.set(Rung::replicas_bitwise, not_applicable, "each rank owns its part");
    }
    if (line_.role == Role::rank_local) return rank_local();
    result_.differed = !a.equal();
    if (result_.differed) {
      result_.spread = spread(context_.table(), context_.payloads, result_.reduced, a);
    }
    if (result_.differed && line_.role == Role::undeclared) {
      return result_.set(Rung::replicas_bitwise, inconclusive, "differs and is undeclared");
    }
    if (!result_.differed && !a.complete()) {
      return result_.set(Rung::replicas_bitwise, inconclusive, "not recorded on some rank");
    }
    result_.set(Rung::replicas_bitwise, verdict_of(!result_.differed));
  }

  // Differs by design, so equality is what is wrong (GC104); zeros say nothing.
  void rank_local() {
    const bool equal = result_.agreement.equal() && result_.agreement.complete();
    if (result_.zero || !result_.agreement.complete()) return;
    result_.set(Rung::replicas_bitwise, verdict_of(!equal));
    if (equal) result_.diagnosis.code = 104;
  }

  // Only where everything it needs was recorded; a guess would be a wrong pass.
  void reduction_right() {
    if (!is_auditable(line_)) {
      return result_.set(Rung::reduction_right, not_applicable,
                         "nothing declares how it is reduced");
    }
    if (!result_.agreement.complete() || !result_.agreement.shapes_equal) {
      return result_.set(Rung::reduction_right, inconclusive, "ranks cannot be compared");
    }
    if (!result_.silent_ranks.empty()) {
      return result_.set(Rung::reduction_right, inconclusive, "local gradients not recorded");
    }
    if (result_.absent && result_.all_locals_zero) return;
    audit_value();
    if (result_.audit.result != pass) try_crossing_window();
    if (result_.audit.result == fail && window_ != nullptr && window_->unknown_past) {
      return give_up();
    }
    result_.set(Rung::reduction_right, result_.audit.result, result_.audit.reason);
  }

  // Recorded micro-steps alone do not explain it, and there were others.
  void give_up() {
    result_.unknown_past = true;
    result_.audit = {};
    result_.set(Rung::reduction_right, inconclusive,
                "carried over from micro-steps that were not recorded");
  }

  void audit_value() {
    if (!result_.sharded || alone() || !audit_shards()) audit_clusters();
  }

  // Each owner answers for its part. False where elements are not at hand: then the parts answer
  // together, by sketches that add up.
  bool audit_shards() {
    result_.right_ranks.clear();
    Audit worst;
    bool first = true;
    for (const int rank : line_.group) {
      const auto question = ask_of_shard(context_, result_, rank,
                                         declared_weights(context_, result_), result_.reductions);
      if (!question) continue;
      const Audit answer = audit(*question);
      if (answer.how != "elementwise") return false;
      if (answer.result == pass) merge(result_.right_ranks, {rank});
      if (first || is_worse(answer, worst)) worst = answer;
      first = false;
    }
    if (!first) result_.audit = worst;
    return !first;
  }

  // The ranks of a cluster hold the same bits: one of them speaks for all.
  void audit_clusters() {
    result_.right_ranks.clear();
    bool first = true;
    for (const auto& cluster : result_.agreement.clusters) {
      const Audit answer = audit_rank(speaker_of(cluster));
      if (answer.result == pass) merge(result_.right_ranks, cluster);
      if (first || is_worse(answer, result_.audit)) result_.audit = answer;
      first = false;
    }
  }

  // At `final` a rank whose gradient did not change since `reduced` tells the digest only.
  int speaker_of(const std::vector<int>& cluster) const {
    const auto found = std::find_if(cluster.begin(), cluster.end(),
                                    [this](int rank) { return entry(rank).sketch >= 0; });
    return found == cluster.end() ? cluster.front() : *found;
  }

  // A cluster that failed is not hidden by one that passed with less to spare.
  static bool is_worse(const Audit& a, const Audit& b) {
    if (badness(a.result) != badness(b.result)) return badness(a.result) > badness(b.result);
    return !(a.bound_used.value_or(0) <= b.bound_used.value_or(0));
  }

  // Bits come before bounds where they can be known.
  Audit audit_rank(int rank) {
    const auto weights = declared_weights(context_, result_);
    const auto question = ask(context_, result_, rank, weights, result_.reductions);
    if (!question) return {};
    Audit answer = audit(*question);
    const auto exact = is_exact(rank, *question);
    result_.exact = exact == true;
    if (exact == false) answer.result = fail;
    if (exact == true && answer.result == inconclusive) answer.result = pass;
    by_counts(*question, answer);
    return answer;
  }

  // One rank rounds nothing but its own additions, unless it scales what it sends or narrows it.
  // Nothing where that is so or elements are not at hand.
  std::optional<bool> is_exact(int rank, const AuditQuestion& question) const {
    const DType stored = question.value.entry->dtype;
    const bool narrowed = is_measured(stored) && question.roundoff > unit_roundoff(stored);
    if (!alone() || declared_weight(line_) != 1 || narrowed) return std::nullopt;
    return result_.window.size() == 1 ? same_bits_as_local(rank) : is_exact_sum(question);
  }

  // One rank and one micro-step: nothing may have touched the gradient.
  bool same_bits_as_local(int rank) const {
    const RowKey key = row_key(result_.tensor, result_.window.front(), Stage::local);
    const Entry* local = find_entry(context_.table(), key, rank);
    if (local == nullptr) return false;
    if (local->state == TensorState::absent) return is_zero_or_absent(entry(rank));
    return local->digest == entry(rank).digest && local->dtype == entry(rank).dtype;
  }

  // Without elements the counts of non-finite values still tell who made or lost them.
  void by_counts(const AuditQuestion& question, Audit& answer) const {
    if (answer.how == "elementwise") return;
    const Entry& value = *question.value.entry;
    if (has_nonfinite(value) && result_.origin.empty()) answer.made = value.nan + value.inf;
    if (!has_nonfinite(value) && !result_.origin.empty()) answer.lost = 1;
    if (answer.made > 0 || answer.lost > 0) answer.result = fail;
  }

  // A gradient that was not cleared holds the micro-steps of earlier steps too (GC210).
  void try_crossing_window() {
    if (window_ == nullptr || window_->whole.size() <= result_.window.size()) return;
    const GradientResult before = result_;
    use_window(window_->whole);
    audit_value();
    if (result_.audit.result == pass) {
      result_.carried_over = true;
    } else {
      result_ = before;
    }
  }

  // Ranks that differ cannot agree on something wrong: `wrong` is about what they share.
  void conclude() {
    const Agreement& a = result_.agreement;
    result_.compared = result_.used && a.complete() && !result_.absent && !a.clusters.empty();
    const RungResult reduction = result_.rung(Rung::reduction_right);
    if (result_.absent) result_.compared = reduction == fail;
    // Nothing but its reduction can be judged of it.
    if (result_.sharded) result_.compared &= reduction == pass || reduction == fail;
    result_.wrong = !result_.differed && result_.rung(Rung::reduction_right) == fail;
    if (!result_.wrong) return;
    if (result_.audit.made > 0) result_.diagnosis.code = 208;
    if (result_.audit.lost > 0) result_.diagnosis.code = 209;
  }

  const Context& context_;
  const StepFacts& step_;
  const PlanLine& line_;
  const Window* window_ = nullptr;  // null: no optimizer came to it
  std::span<const Entry> entries_;
  GradientResult result_;
};

}  // namespace

std::vector<GradientResult> climb(const Context& context) {
  std::vector<GradientResult> results;
  for (const TensorId& tensor : context.facts.inventory) {
    for (const StepFacts& step : steps_of(context.facts, tensor.model)) {
      results.push_back(Climber(context, step, tensor).climb());
    }
  }
  std::stable_sort(
      results.begin(), results.end(),
      [](const GradientResult& a, const GradientResult& b) { return a.step < b.step; });
  return results;
}

}  // namespace gradcheck
