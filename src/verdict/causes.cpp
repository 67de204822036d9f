// SPDX-License-Identifier: Apache-2.0
#include "verdict/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "verdict/event_counts.h"
#include "verdict/findings.h"
#include "verdict/program.h"

namespace gradcheck {
namespace {

using enum Confidence;

constexpr double kNearFactor = 0.01;  // a measured factor this close to N is called N

bool is_near(double value, double target) {
  return std::abs(value - target) <= kNearFactor * std::abs(target);
}

class Investigator {
 public:
  Investigator(const Context& context, const std::vector<GradientResult>& results,
               std::span<const Finding> findings)
      : context_(context), results_(results), findings_(findings) {}

  std::vector<CauseClaim> work() {
    for (const Finding& finding : findings_) explain(finding);
    divergent_graphs();
    one_rank_off();
    unfinished_reduction();
    const bool error = std::any_of(findings_.begin(), findings_.end(), [](const Finding& finding) {
      return finding.severity == Severity::error && finding.code < 800 && finding.code / 100 != 6;
    });
    if (error && claims_.empty()) claim(Cause::unexplained, possible, "", {});
    std::stable_sort(claims_.begin(), claims_.end(), [](const CauseClaim& a, const CauseClaim& b) {
      return a.confidence > b.confidence;
    });
    return std::move(claims_);
  }

 private:
  void explain(const Finding& finding) {
    switch (finding.code) {
      case 201:
      case 202:
      case 203:
        return not_reduced(finding);
      case 204:
        return scaled(finding);
      case 205:
        return reweighted(finding);
      case 206:
        return simple(finding, Cause::sub_group, certain);
      case 207:
        return simple(finding, Cause::lost_rank, certain);
      case 208:
        return simple(finding, Cause::overflow_in_reduction, likely);
      case 104:
        return simple(finding, Cause::shared_by_mistake, certain);
      case 210:
        return simple(finding, Cause::carried_over, certain);
      case 212:
        return simple(finding, Cause::stray_arm, likely);
      case 301:
        return simple(finding, Cause::start_mismatch, certain);
      case 303:
        return simple(finding, Cause::not_stepped, likely);
      case 401:
        return simple(finding, Cause::buffer_drift, certain);
      case 601:
        return simple(finding, Cause::duplicate_data, certain);
      case 606:
        return ignored(finding);
      case 804:
        return skipped();
      default:
        return;
    }
  }

  // One claim for a cause and model, however many findings lead to it.
  CauseClaim& claim(Cause cause, Confidence confidence, std::string_view model,
                    std::vector<std::string> evidence) {
    for (CauseClaim& known : claims_) {
      if (known.cause != cause || known.model != model) continue;
      known.confidence = std::max(known.confidence, confidence);
      for (std::string& line : evidence) add_once(known.evidence, std::move(line));
      return known;
    }
    CauseClaim& added = claims_.emplace_back();
    added.cause = cause;
    added.confidence = confidence;
    added.model = model;
    added.evidence = std::move(evidence);
    added.next = info_of(cause).next;
    return added;
  }

  static void add_once(std::vector<std::string>& lines, const std::string& line) {
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  }

  void simple(const Finding& finding, Cause cause, Confidence confidence) {
    if (finding.severity == Severity::note) return;
    claim(cause, confidence, finding.model, {finding.message});
  }

  // A backward that no wrapper forward armed is certain proof: the reducer could not have acted.
  void not_reduced(const Finding& finding) {
    const BackwardCounts counts = count_backwards(context_.table(), finding.model);
    const bool wrapped = wrapper_of(context_.table(), finding.model) != nullptr;
    if (counts.last_under_no_sync && finding.code != 202) {
      claim(Cause::no_sync_window, certain, finding.model,
            {"the last backward before the step ran under no_sync", finding.message});
    }
    if (wrapped && counts.outside_no_sync > 0 && counts.armed == 0) {
      CauseClaim& made =
          claim(Cause::bypass, certain, finding.model,
                {fmt::format("{}, {} of them armed by a forward of the wrapper",
                             counted(counts.outside_no_sync, "backward"), counts.armed),
                 finding.message});
      made.site = counts.site;
    } else if (wrapped && counts.armed > 0 && counts.armed < counts.outside_no_sync) {
      claim(Cause::part_of_step, likely, finding.model,
            {fmt::format("{} of {} armed", counts.armed,
                         counted(counts.outside_no_sync, "backward"))})
          .site = counts.site;
    }
    if (finding.code == 202) unused(finding);
  }

  // One example is enough; the finding has all names.
  void unused(const Finding& finding) {
    for (const GradientResult& result : results_) {
      const bool ours =
          model_of(context_, result) == finding.model &&
          (result.diagnosis.code == 201 || result.rung(Rung::present) == RungResult::fail);
      if (!ours || !absent_somewhere(result)) continue;
      claim(Cause::unused_parameter, likely, finding.model,
            {fmt::format("{} got no local gradient on some rank", name_of(context_, result))});
      return;
    }
  }

  std::vector<int> ranks_without_local(const GradientResult& result) const {
    std::set<int> ranks;
    for (const Moment& moment : result.window) {
      const auto locals = context_.table().entries(row_key(result.tensor, moment, Stage::local));
      const Agreement agreement = compare_ranks(locals, line_of(context_, result).group);
      ranks.insert(agreement.absent.begin(), agreement.absent.end());
    }
    return {ranks.begin(), ranks.end()};
  }
  bool absent_somewhere(const GradientResult& result) const {
    return !ranks_without_local(result).empty();
  }

  // Factors of N and 1/N have names of their own where the mean was declared.
  void scaled(const Finding& finding) {
    for (const GradientResult& result : results_) {
      if (result.diagnosis.code != 204 || model_of(context_, result) != finding.model) continue;
      const double ranks = static_cast<double>(line_of(context_, result).group.size());
      const double factor = result.diagnosis.factor;
      const std::string seen = factor_text(factor) + " the declared value";
      const bool mean = line_of(context_, result).reduction == Reduction::mean;
      const Cause cause = mean && ranks > 1 && is_near(factor, ranks)       ? Cause::sum_not_mean
                          : mean && ranks > 1 && is_near(factor, 1 / ranks) ? Cause::double_division
                                                                            : Cause::scaled;
      claim(cause, certain, finding.model, {seen});
      return;
    }
    claim(Cause::scaled, certain, finding.model, {finding.message});
  }

  // Shares of the data add up to one; clipping before the reduction only takes away.
  void reweighted(const Finding& finding) {
    for (const GradientResult& result : results_) {
      if (result.diagnosis.code != 205 || model_of(context_, result) != finding.model) continue;
      const double declared = declared_weight(line_of(context_, result));
      const bool less =
          std::all_of(result.weights.begin(), result.weights.end(),
                      [declared](double weight) { return weight <= declared * (1 + kNearFactor); });
      const Cause cause = less ? Cause::clip_before_reduce : Cause::token_weighting;
      claim(cause, likely, finding.model, {"weights " + weights_text(result.weights)});
      return;
    }
  }

  static std::string weights_text(const std::vector<double>& weights) {
    std::string text;
    for (const double weight : weights) text += fmt::format(" {:.3g}", weight);
    return text.substr(text.empty() ? 0 : 1);
  }

  // The wrapper's own ignore list explains why nobody declared the tensor.
  void ignored(const Finding& finding) {
    const WrapperRecord* wrapper = wrapper_of(context_.table(), finding.model);
    if (wrapper == nullptr) return;
    for (const std::string& name : finding.names) {
      const auto& names = wrapper->ignored;
      if (std::find(names.begin(), names.end(), name) == names.end()) continue;
      claim(Cause::ignored_parameter, certain, finding.model, {name});
    }
  }

  void skipped() {
    for (const StepFacts& step : context_.facts.steps) {
      if (!skipped_by_some(step)) continue;
      claim(Cause::scaler_mismatch, certain, "",
            {fmt::format("{} skipped step {}, {} took it", ranks_text(step.skipped), step.step,
                         ranks_text(step.stepped))});
      return;
    }
  }

  // A parameter with a gradient on some ranks only, where the reduced gradients are not right.
  void divergent_graphs() {
    for (const GradientResult& result : results_) {
      if (!result.used || !(result.differed || result.wrong)) continue;
      const auto without = ranks_without_local(result);
      if (without.empty() || without.size() == line_of(context_, result).group.size()) continue;
      claim(Cause::rank_divergent_graph, likely, model_of(context_, result),
            {fmt::format("{} took no part in the loss on {}", name_of(context_, result),
                         ranks_text(without))});
      return;
    }
  }

  // All ranks but one hold the declared reduction.
  void one_rank_off() {
    for (const GradientResult& result : results_) {
      const std::size_t ranks = line_of(context_, result).group.size();
      if (!result.used || !result.differed || result.right_ranks.size() + 1 != ranks) continue;
      if (result.diagnosis.code == 201 || ranks_without_local(result).size() > 0) continue;
      const auto off = minority(result.agreement);
      const Confidence confidence = ranks > 2 ? likely : possible;
      claim(Cause::corrupted_rank, confidence, model_of(context_, result),
            {fmt::format("{} is right on every rank but {}", name_of(context_, result),
                         ranks > 2 ? fmt::format("{}", off.front()) : "one")});
      return;
    }
  }

  // c10d's reducer says so itself (torch/csrc/distributed/c10d/reducer.cpp).
  void unfinished_reduction() {
    for (int rank = 0; rank < context_.table().world_size(); ++rank) {
      const EventRecord* exception = exception_of(context_.table().rank(rank));
      if (exception == nullptr) continue;
      if (exception->text.find("Expected to have finished reduction in the prior iteration") ==
          std::string::npos) {
        continue;
      }
      claim(Cause::unused_parameter, likely, exception->model,
            {fmt::format("rank {}: the reducer still waited for gradients", rank)});
      return;
    }
  }

  const Context& context_;
  const std::vector<GradientResult>& results_;
  std::span<const Finding> findings_;
  std::vector<CauseClaim> claims_;
};

}  // namespace

std::vector<CauseClaim> name_causes(const Context& context,
                                    const std::vector<GradientResult>& results,
                                    std::span<const Finding> findings) {
  return Investigator(context, results, findings).work();
}

}  // namespace gradcheck
