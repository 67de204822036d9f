// SPDX-License-Identifier: Apache-2.0
#include "verdict/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "verdict/claims.h"
#include "verdict/event_counts.h"
#include "verdict/findings.h"
#include "verdict/program.h"
#include "verdict/unreduced.h"
#include "verdict/witness.h"

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
    edited_ranks();
    uneven_scales();
    without_backward();
    unfinished_reduction();
    const bool error = std::any_of(findings_.begin(), findings_.end(), [](const Finding& finding) {
      return finding.severity == Severity::error && finding.code < 800 && finding.code / 100 != 6;
    });
    if (error && claims_.empty()) claims_.add(Cause::unexplained, possible, "", {});
    return claims_.take();
  }

 private:
  void explain(const Finding& finding) {
    switch (finding.code) {
      case 201:
      case 202:
      case 203:
        return explain_unreduced(context_, results_, finding, claims_);
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
        return simple(finding, Cause::carried_over, is_past_unknown(finding) ? likely : certain);
      case 211:
        return repeated(finding);
      case 212:
        return stray_arm(finding);
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

  void simple(const Finding& finding, Cause cause, Confidence confidence) {
    if (finding.severity == Severity::note) return;
    claims_.add(cause, confidence, finding.model, {finding.message});
  }

  // That it was not seen to be clear is no proof that it was not.
  bool is_past_unknown(const Finding& finding) const {
    return std::none_of(results_.begin(), results_.end(), [&](const GradientResult& result) {
      return result.carried_over && model_of(context_, result) == finding.model;
    });
  }

  // A job's bare forwards may be of a part whose output the loss needs as well.
  void stray_arm(const Finding& finding) {
    if (context_.input.native) return simple(finding, Cause::stray_arm, likely);
    simple(finding, Cause::stray_arm, possible);
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
      std::vector<std::string> evidence = {seen};
      const WrapperRecord* wrapper = wrapper_of(context_.table(), finding.model);
      if (wrapper != nullptr && !wrapper->hook.empty()) {
        evidence.push_back("the communication hook is " + wrapper->hook);
      }
      claims_.add(cause, certain, finding.model, std::move(evidence));
      return;
    }
    claims_.add(Cause::scaled, certain, finding.model, {finding.message});
  }

  // Summed after every micro-step, what was reduced before is multiplied again.
  void repeated(const Finding& finding) {
    if (wrapper_of(context_.table(), finding.model) != nullptr || context_.input.native) return;
    claims_.add(Cause::unexplained, possible, finding.model,
                {"an accumulated gradient was reduced after every micro-step", finding.message});
  }

  // Shares of the data add up to one; clipping before the reduction only takes away.
  void reweighted(const Finding& finding) {
    for (const GradientResult& result : results_) {
      if (result.diagnosis.code != 205 || model_of(context_, result) != finding.model) continue;
      if (!result.clips.empty()) return clipped(finding, result);
      const double declared = declared_weight(line_of(context_, result));
      const bool less =
          std::all_of(result.weights.begin(), result.weights.end(),
                      [declared](double weight) { return weight <= declared * (1 + kNearFactor); });
      const Cause cause = less ? Cause::clip_before_reduce : Cause::token_weighting;
      claims_.add(cause, likely, finding.model, {"weights " + weights_text(result.weights)});
      return;
    }
  }

  // The recorded clips explain the weights, and they were not the same on all ranks.
  void clipped(const Finding& finding, const GradientResult& result) {
    std::vector<std::string> evidence;
    const auto& group = line_of(context_, result).group;
    for (std::size_t r = 0; r < group.size(); ++r) {
      evidence.push_back(
          fmt::format("rank {} clipped its own gradients by {:.3g} before they were "
                      "reduced",
                      group[r], result.clips[r]));
    }
    claims_.add(Cause::clip_before_reduce, certain, finding.model, std::move(evidence));
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
      claims_.add(Cause::ignored_parameter, certain, finding.model, {name});
    }
  }

  void skipped() {
    for (const ModelFacts& model : context_.facts.models) {
      for (const StepFacts& step : model.steps) {
        if (!skipped_by_some(step)) continue;
        claims_.add(Cause::scaler_mismatch, certain, "",
                    {fmt::format("{} skipped step {}, {} took it", ranks_text(step.skipped),
                                 step.step, ranks_text(step.stepped))});
        return;
      }
    }
  }

  // A parameter with a gradient on some ranks only, where the reduced gradients are not right.
  void divergent_graphs() {
    for (const GradientResult& result : results_) {
      if (!result.used || !(result.differed || result.wrong)) continue;
      const auto without = ranks_without_local(context_, result);
      if (without.empty() || without.size() == line_of(context_, result).group.size()) continue;
      claims_.add(Cause::rank_divergent_graph, likely, model_of(context_, result),
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
      if (result.diagnosis.code == 201 || ranks_without_local(context_, result).size() > 0)
        continue;
      const auto off = minority(result.agreement);
      const Confidence confidence = ranks > 2 ? likely : possible;
      claims_.add(Cause::corrupted_rank, confidence, model_of(context_, result),
                  {fmt::format("{} is right on every rank but {}", name_of(context_, result),
                               ranks > 2 ? fmt::format("{}", off.front()) : "one")});
      return;
    }
  }

  // Equal when they were reduced, and touched on some ranks only before the step.
  void edited_ranks() {
    for (const GradientResult& result : results_) {
      const auto& group = line_of(context_, result).group;
      if (!result.used || result.differed || result.reduced.stage != Stage::reduced) continue;
      const RowKey key = row_key(result.tensor, {result.step, result.reduced.micro}, Stage::final);
      const Agreement after = compare_ranks(context_.table().entries(key), group);
      const auto edited = ranks_that_edited(context_, result);
      if (!after.complete() || after.equal() || edited.empty() || edited.size() == group.size()) {
        continue;
      }
      CauseClaim& claim = claims_.add(
          Cause::corrupted_rank, likely, model_of(context_, result),
          {fmt::format("{} was changed on {} alone between `reduced` and `final`, in step {}",
                       name_of(context_, result), ranks_text(edited), result.step)});
      claim.next = fmt::format("Look at what {} {} to gradients between backward and step.",
                               ranks_text(edited), edited.size() == 1 ? "does" : "do");
      return;
    }
  }

  // Gradients that part at `final` because each rank unscaled by a scale of its own.
  void uneven_scales() {
    for (const GradientResult& result : results_) {
      if (!result.used || result.differed || context_.input.native) continue;
      const auto& group = line_of(context_, result).group;
      const auto scale_on = [&](int rank) {
        return 1 / witnessed(context_, result.tensor, result.step, rank).unscale;
      };
      const auto odd = std::find_if(group.begin(), group.end(), [&](int rank) {
        return scale_on(rank) != scale_on(group.front());
      });
      if (odd == group.end()) continue;
      claims_.add(Cause::scaler_mismatch, certain, model_of(context_, result),
                  {fmt::format("rank {} unscaled by {:g}, rank {} by {:g}", group.front(),
                               scale_on(group.front()), *odd, scale_on(*odd))});
      return;
    }
  }

  // Gradients that an optimizer took although no backward brought them.
  void without_backward() {
    for (const GradientResult& result : results_) {
      const StepFacts* step = find_step(context_.facts, result.tensor.model, result.step);
      const bool sudden = result.used && result.reduced.stage == Stage::final && step != nullptr &&
                          step->micros.empty();
      if (!sudden) continue;
      claims_.add(Cause::grad_api, likely, model_of(context_, result),
                  {fmt::format("the optimizer took gradients in step {}, and no backward brought "
                               "them",
                               result.step)});
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
      claims_.add(Cause::unused_parameter, likely, exception->model,
                  {fmt::format("rank {}: the reducer still waited for gradients", rank)});
      return;
    }
  }

  const Context& context_;
  const std::vector<GradientResult>& results_;
  std::span<const Finding> findings_;
  ClaimSet claims_;
};

}  // namespace

std::vector<CauseClaim> name_causes(const Context& context,
                                    const std::vector<GradientResult>& results,
                                    std::span<const Finding> findings) {
  return Investigator(context, results, findings).work();
}

}  // namespace gradcheck
