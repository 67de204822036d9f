// SPDX-License-Identifier: Apache-2.0
#include "verdict/dumps.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/phrases.h"
#include "verdict/attribution.h"
#include "verdict/causes.h"
#include "verdict/dump_causes.h"
#include "verdict/dump_distances.h"
#include "verdict/findings.h"
#include "verdict/ladder.h"
#include "verdict/outcome.h"
#include "verdict/reduction.h"
#include "verdict/summary.h"

namespace gradcheck {
namespace {

using Values = std::vector<const TensorView*>;

// What the user declares: every tensor is shared by all ranks and reduced in one way.
std::vector<PlanRule> rules_of(const DumpInput& input) {
  PlanRule rule;
  rule.role = Role::shared;
  rule.reduction = input.has_locals ? input.reduction : Reduction::none;
  rule.factor = input.factor;
  rule.wire_dtype = input.wire_dtype;
  return {rule};
}

class DumpJudge {
 public:
  DumpJudge(const DumpInput& input, const Context& context)
      : input_(input), context_(context), findings_(context) {}

  ArmReport judge() {
    arm_.name = "files";
    arm_.probe = "files";
    arm_.world_size = context_.table().world_size();
    arm_.plan = context_.plan.lines;
    results_ = climb(context_);
    if (input_.has_locals) weights_ = judge_weights(context_, results_);
    if (input_.has_locals) attribute(context_, results_);
    read_ranks();
    if (input_.reference != nullptr) read_reference();
    say_what_was_found();
    summarise(context_, results_, weights_, arm_);
    name_oracle();
    arm_.findings = findings_.take();
    if (!input_.has_locals) speak_of_tensors();
    arm_.causes = causes_of_dumps(context_, results_, arm_.findings, input_.has_locals);
    say_what_was_not_checked();
    arm_.outcome = decide(context_, results_, arm_);
    arm_.headline = headline_text();
    return std::move(arm_);
  }

 private:
  bool alone() const { return arm_.world_size == 1; }
  bool audits() const { return input_.has_locals && input_.reduction != Reduction::none; }

  const Entry& entry(const GradientResult& result, int rank) const {
    return *find_entry(context_.table(), result.reduced, rank);
  }

  // One rank of each cluster that has the tensor: the others hold the same bits.
  std::vector<int> leaders_of(const GradientResult& result) const {
    std::vector<int> leaders;
    for (const auto& cluster : result.agreement.clusters) {
      if (entry(result, cluster.front()).state != TensorState::absent) {
        leaders.push_back(cluster.front());
      }
    }
    return leaders;
  }

  Values values_of(const GradientResult& result) const {
    Values values;
    for (const int rank : leaders_of(result)) {
      values.push_back(find_view(context_.table(), input_.payloads, result.reduced, rank));
    }
    return values;
  }

  DumpTensor row_of(const GradientResult& result) const {
    DumpTensor row;
    row.name = name_of(context_, result);
    row.clusters = cluster_text(result.agreement);
    for (const int rank : leaders_of(result)) {
      row.nan_elements = std::max(row.nan_elements, entry(result, rank).nan);
      row.inf_elements = std::max(row.inf_elements, entry(result, rank).inf);
    }
    return row;
  }

  // Ranks against each other: how far the values that differ stand apart, and who stands with whom.
  void read_ranks() {
    DumpReading& reading = arm_.dumps.emplace_back();
    reading.against = "ranks";
    reading.tolerance = text_of({});
    UlpDistance total;
    std::map<std::string, std::uint64_t> clusters;
    for (const GradientResult& result : results_) {
      reading.tensors += result.compared && !alone();
      if (!result.differed) continue;
      const Values values = values_of(result);
      const TensorDistance distance = distance_among(values);
      total.add(distance.ulps);
      ++clusters[cluster_text(result.agreement)];
      add_distance(reading, distance, row_of(result));
    }
    reading.outside = reading.differed;
    if (reading.differed > 0) write_histogram(reading, total);
    for (const auto& [text, tensors] : clusters) reading.clusters.push_back({text, tensors});
    std::stable_sort(
        reading.clusters.begin(), reading.clusters.end(),
        [](const ClusterRow& a, const ClusterRow& b) { return a.tensors > b.tensors; });
  }

  void read_reference() {
    DumpReading& reading = arm_.dumps.emplace_back();
    reading.against = "reference";
    reading.tolerance = text_of(input_.tolerance);
    UlpDistance total;
    std::set<std::string> left;
    for (const auto& [name, view] : *input_.reference) left.insert(name);
    for (GradientResult& result : results_) {
      left.erase(std::string(name_of(context_, result)));
      hold_against_reference(result, reading, total);
    }
    if (reading.differed > 0) write_histogram(reading, total);
    if (left.empty()) return;
    findings_.say(
        105, fmt::format("{} in the reference only, such as {}",
                         counted(left.size(), "tensor") + (left.size() == 1 ? " stands" : " stand"),
                         *left.begin()));
  }

  void miss(GradientResult& result, const std::string& detail) {
    result.set(Rung::oracle_close, RungResult::fail, detail);
    result.wrong |= !result.differed;
    findings_.add({105, "", name_of(context_, result), 0, {}, detail});
  }

  void hold_against_reference(GradientResult& result, DumpReading& reading, UlpDistance& total) {
    const auto found = input_.reference->find(std::string(name_of(context_, result)));
    if (found == input_.reference->end()) return miss(result, "not in the reference");
    const TensorView& reference = found->second;
    Values values = values_of(result);
    if (values.empty()) return;
    ++reading.tensors;
    std::erase_if(values, [&](const TensorView* value) { return same_bits(*value, reference); });
    if (values.empty()) return result.set(Rung::oracle_close, RungResult::pass);
    const bool norm = input_.tolerance.kind == ToleranceKind::norm;
    const TensorDistance distance = distance_to(reference, values, norm);
    DumpTensor row = row_of(result);
    if (norm && distance.comparable) row.norm = distance.norm;
    total.add(distance.ulps);
    add_distance(reading, distance, std::move(row));
    if (is_within(distance, input_.tolerance)) {
      return result.set(Rung::oracle_close, RungResult::pass);
    }
    ++reading.outside;
    miss(result, why_outside(values, reference, distance));
  }

  std::string why_outside(const Values& values, const TensorView& reference,
                          const TensorDistance& distance) const {
    const auto other = [&](auto TensorView::* part) {
      return std::any_of(values.begin(), values.end(),
                         [&](const TensorView* value) { return value->*part != reference.*part; });
    };
    if (!distance.comparable && other(&TensorView::shape)) return "another shape";
    if (!distance.comparable && other(&TensorView::dtype)) return "another type";
    if (input_.tolerance.kind == ToleranceKind::exact) return "";
    if (distance.comparable) return "tolerance " + text_of(input_.tolerance);
    return fmt::format("{} differs, and has no distance", name_of(reference.dtype));
  }

  // Without locals nothing tells where a value that is not finite came from.
  void say_what_was_found() {
    if (context_.facts.inventory.empty()) {
      return findings_.say(604, "nothing was compared: the files hold no tensor");
    }
    if (!input_.has_locals) settle_without_locals();
    std::vector<GradientResult*> nonfinite;
    for (GradientResult& result : results_) {
      if (!input_.has_locals && result.nonfinite) nonfinite.push_back(&result);
    }
    for (GradientResult* result : nonfinite) result->nonfinite = false;
    find_in_gradients(context_, results_, findings_);
    for (GradientResult* result : nonfinite) accuse_nonfinite(*result);
    if (alone() && !input_.has_locals && input_.reference == nullptr) {
      findings_.say(604, "one rank's dump alone: there is nothing to compare it with");
    }
  }

  // Nobody asked about locals; a tensor proves something if it is not zero.
  void settle_without_locals() {
    for (GradientResult& result : results_) {
      result.silent_ranks.clear();
      result.proved = !result.zero && !result.absent;
      result.set(Rung::locals_distinct, RungResult::not_applicable, "no local gradients given");
      result.set(Rung::reduction_right, RungResult::not_applicable, "no local gradients given");
    }
  }

  void accuse_nonfinite(GradientResult& result) {
    result.nonfinite = true;
    std::vector<int> ranks;
    bool mask = true;
    for (const int rank : result.agreement.present) {
      const Entry& found = entry(result, rank);
      if (found.state != TensorState::nonfinite) continue;
      ranks.push_back(rank);
      mask &= found.nan == 0 && found.inf + found.zeros == found.n;
    }
    constexpr const char* kMask = "only zeros and infinities, as in an attention mask";
    findings_.add({701, "", name_of(context_, result), 0, ranks, mask ? kMask : ""});
    if (mask) findings_.soften(701, kMask, Severity::note);
  }

  // Parameters and buffers may be dumped as well as gradients.
  void speak_of_tensors() {
    for (Finding& finding : arm_.findings) {
      for (const std::string word : {"gradients", "gradient"}) {
        const std::size_t at = finding.message.find(word);
        if (at == std::string::npos) continue;
        finding.message.replace(at, word.size(), word == "gradient" ? "tensor" : "tensors");
        break;
      }
    }
  }

  // summarise() knows of no reference.
  void name_oracle() {
    if (input_.reference == nullptr || arm_.rungs.empty()) return;
    arm_.rungs.back().reason = arm_.rungs.back().fail > 0 ? "beyond the tolerance" : "";
  }

  void say_what_was_not_checked() {
    auto& list = arm_.scope.not_checked;
    if (alone()) list.push_back("agreement (one rank)");
    if (!audits()) {
      list.push_back(input_.has_locals ? "reduction (--reduction none)" : "reduction (no --local)");
    }
    if (input_.reference == nullptr) list.push_back("another run (no --reference)");
    const Totals& totals = arm_.totals;
    if (totals.proved_nothing > 0 && totals.proved_nothing < totals.inventory) {
      arm_.notes.push_back(fmt::format(
          "{} of {} proved nothing: {}", totals.proved_nothing, totals.inventory,
          input_.has_locals ? "no distinct non-zero locals" : "zero or absent on every rank"));
    }
  }

  const Finding* first_error() const {
    const auto found = std::find_if(arm_.findings.begin(), arm_.findings.end(),
                                    [](const Finding& f) { return f.severity == Severity::error; });
    return found == arm_.findings.end() ? nullptr : &*found;
  }

  std::string headline_text() const {
    const Finding* error = first_error();
    if (arm_.outcome == Outcome::consistent) return consistent_text();
    if (arm_.outcome != Outcome::inconsistent) {
      return error == nullptr ? "nothing proven" : "nothing proven: " + error->message;
    }
    const auto has = [&](int code) {
      return std::any_of(arm_.findings.begin(), arm_.findings.end(),
                         [code](const Finding& finding) { return finding.code == code; });
    };
    if (has(201)) return "not reduced: every rank holds its own local gradients";
    if (arm_.totals.differed > 0) {
      return fmt::format("{} of {} differ{}", arm_.totals.differed,
                         counted(static_cast<std::uint64_t>(arm_.totals.inventory), "tensor"),
                         common_clusters());
    }
    const bool agrees = !alone();
    return (agrees ? "equal bit for bit, but " : "") + error->message;
  }

  // Who stands with whom, where that is the same in all tensors that differ.
  std::string common_clusters() const {
    const auto& clusters = arm_.dumps.front().clusters;
    return clusters.size() == 1 ? " as " + clusters.front().clusters : "";
  }

  std::string consistent_text() const {
    std::string text = alone() ? "" : "equal bit for bit on every rank";
    const auto add = [&text](const std::string& more) {
      text += (text.empty() ? "" : "; ") + more;
    };
    if (audits() && alone() && input_.reduction != Reduction::factor) {
      add("is its own local gradient bit for bit");
    } else if (audits()) {
      add(fmt::format("is the {} of the local gradients (bound used {:.2g})",
                      gradcheck::name_of(input_.reduction), arm_.totals.bound_used.value_or(0)));
    }
    if (input_.reference == nullptr) return text;
    const DumpReading& reading = arm_.dumps.back();
    add(reading.differed == 0 ? "equals the reference bit for bit"
                              : fmt::format("{} of {} differ from the reference within {}",
                                            reading.differed, reading.tensors, reading.tolerance));
    return text;
  }

  const DumpInput& input_;
  const Context& context_;
  FindingSet findings_;
  std::vector<GradientResult> results_;
  std::vector<WeightReading> weights_;
  ArmReport arm_;
};

}  // namespace

ArmReport judge_dumps(const DumpInput& input) {
  const std::vector<PlanRule> rules = rules_of(input);
  JudgeInput judged{input.table, rules, input.payloads};
  judged.all_tensors = input.all_tensors;
  Facts facts = arrange(input.table);
  Plan plan = infer_plan(input.table, facts, rules);
  const Context context{judged, input.table, input.payloads, std::move(facts), std::move(plan)};
  return DumpJudge(input, context).judge();
}

}  // namespace gradcheck
