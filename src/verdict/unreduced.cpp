// SPDX-License-Identifier: Apache-2.0
#include "verdict/unreduced.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "verdict/event_counts.h"
#include "verdict/findings.h"

namespace gradcheck {
namespace {

using enum Confidence;

constexpr std::size_t kSites = 3;  // of bare forwards that are named

class Unreduced {
 public:
  Unreduced(const Context& context, const std::vector<GradientResult>& results,
            const Finding& finding, ClaimSet& claims)
      : context_(context),
        finding_(finding),
        claims_(claims),
        wrapper_(wrapper_of(context.table(), finding.model)) {
    for (const GradientResult& result : results) {
      if (!result.used || model_of(context, result) != finding.model) continue;
      all_.push_back(&result);
      if (is_unreduced(result)) members_.push_back(&result);
    }
  }

  void explain() {
    const BackwardCounts counts = count_moments();
    if (finding_.code != 202 && counts.last_under_no_sync) left_no_sync(counts);
    if (wrapper_ != nullptr && counts.is_bypassed()) return bypassed(counts);
    if (wrapper_ != nullptr && counts.is_partly_armed()) partly_armed(counts);
    if (finding_.code == 203) return;
    for (const GradientResult* member : members_) unused_or_stale(*member, counts);
    if (finding_.code == 201 && counts.armed > 0) wait_for_unused();
    if (!claims_.has(finding_.model)) say_what_is_known(counts);
  }

 private:
  static bool is_unreduced(const GradientResult& result) {
    return result.diagnosis.code == 201 || result.diagnosis.code == 203 ||
           result.rung(Rung::present) == RungResult::fail;
  }

  // Steps in which every backward escaped tell more than all steps together: a loss of zero, or
  // another branch, may make some look clean.
  BackwardCounts count_moments() const {
    std::map<std::int64_t, std::set<Moment>> steps;
    for (const GradientResult* member : members_) {
      steps[member->step].insert(member->window.begin(), member->window.end());
    }
    std::set<Moment> bypassed, all;
    for (const auto& [step, moments] : steps) {
      all.insert(moments.begin(), moments.end());
      if (!count_backwards(context_, finding_.model, moments).is_bypassed()) continue;
      bypassed.insert(moments.begin(), moments.end());
    }
    return count_backwards(context_, finding_.model, bypassed.empty() ? all : bypassed);
  }

  void left_no_sync(const BackwardCounts& counts) {
    claims_
        .add(Cause::no_sync_window, certain, finding_.model,
             {"the last backward before the step ran under no_sync", finding_.message})
        .site = counts.site;
  }

  // A backward that no wrapper forward armed is certain proof: the reducer could not have acted.
  void bypassed(const BackwardCounts& counts) {
    std::vector<std::string> evidence = {
        fmt::format("{}, {} of them armed by a forward of the wrapper",
                    counted(counts.outside_no_sync, "backward"), counts.armed)};
    for (const std::string& site : sites_of_bare_forwards()) {
      evidence.push_back("the loss came from the inner module: " + site + " (forward of .module)");
    }
    evidence.push_back(finding_.message);
    claims_.add(Cause::bypass, certain, finding_.model, std::move(evidence)).site = counts.site;
  }

  void partly_armed(const BackwardCounts& counts) {
    claims_
        .add(Cause::part_of_step, likely, finding_.model,
             {fmt::format("{} of {} armed", counts.armed,
                          counted(counts.outside_no_sync, "backward"))})
        .site = counts.site;
  }

  std::vector<std::string> sites_of_bare_forwards() const {
    std::vector<std::string> sites;
    for (const int rank : every_rank(context_.table().world_size())) {
      for (const EventRecord& event : context_.table().rank(rank).events) {
        const bool bare = event.type == EventType::inner_forward &&
                          concerns(event, finding_.model) && event.grad_mode.value_or(false);
        if (!bare || event.site.empty() || sites.size() >= kSites) continue;
        if (std::find(sites.begin(), sites.end(), event.site) == sites.end()) {
          sites.push_back(event.site);
        }
      }
    }
    return sites;
  }

  bool finds_unused() const { return wrapper_ != nullptr && wrapper_->find_unused; }

  // Some escaped while the others were reduced. The first example of a kind is enough: the finding
  // has all names.
  void unused_or_stale(const GradientResult& member, const BackwardCounts& counts) {
    if (finding_.code != 202 || named_.contains(kind_of(member, counts))) return;
    const Kind kind = kind_of(member, counts);
    named_.insert(kind);
    if (kind == Kind::early) early(member);
    if (kind == Kind::unused) unused(member);
    if (kind == Kind::stale) stale(member);
  }

  enum class Kind { other, unused, early, stale };

  Kind kind_of(const GradientResult& member, const BackwardCounts& counts) const {
    if (!ranks_without_local(context_, member).empty()) {
      return finds_unused() && is_used_under_no_sync_only(member) ? Kind::early : Kind::unused;
    }
    const bool armed = counts.armed > 0 && counts.armed == counts.outside_no_sync;
    return wrapper_ != nullptr && armed ? Kind::stale : Kind::other;
  }

  // The detection looks at the last forward only (torch issue 69031).
  bool is_used_under_no_sync_only(const GradientResult& member) const {
    return std::all_of(member.window.begin(), member.window.end(), [&](const Moment& moment) {
      const StepFacts* step = find_step(context_.facts, member.tensor.model, moment.step);
      const bool held =
          step != nullptr &&
          std::any_of(step->micros.begin(), step->micros.end(), [&](const MicroFacts& micro) {
            return micro.micro == moment.micro && micro.no_sync;
          });
      return held || is_absent(member, moment);
    });
  }

  bool is_absent(const GradientResult& member, const Moment& moment) const {
    const auto locals = context_.table().entries(row_key(member.tensor, moment, Stage::local));
    const Agreement agreement = compare_ranks(locals, line_of(context_, member).group);
    return agreement.complete() && agreement.present.empty();
  }

  void early(const GradientResult& member) {
    claims_.add(Cause::part_of_step, likely, finding_.model,
                {fmt::format("{} took part only in micro-steps under no_sync, and counted as "
                             "unused in the last one",
                             name_of(context_, member))});
  }

  void unused(const GradientResult& member) {
    const auto ranks = ranks_without_local(context_, member);
    const bool everywhere = ranks.size() == line_of(context_, member).group.size();
    std::vector<std::string> evidence = {fmt::format("{} got no local gradient on {}",
                                                     name_of(context_, member),
                                                     everywhere ? "any rank" : ranks_text(ranks))};
    if (wrapper_ != nullptr && !wrapper_->find_unused) {
      evidence.push_back("find_unused_parameters is off");
    }
    const bool divergent = !everywhere && !context_.input.native;
    claims_.add(Cause::unused_parameter, divergent ? possible : likely, finding_.model,
                std::move(evidence));
  }

  // Its hooks did not fire although it had a gradient and the reduction was armed.
  void stale(const GradientResult& member) {
    const std::string name(name_of(context_, member));
    const auto steps = steps_of(context_.facts, member.tensor.model);
    const RowKey start =
        row_key(member.tensor, {steps.front().step, 0}, Stage::start, TensorKind::param);
    const auto entries = context_.table().entries(start);
    const bool trained = std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
      return entry.recorded && entry.requires_grad != 0;
    });
    if (!trained) {
      claims_.add(Cause::stale_hook, certain, finding_.model,
                  {fmt::format("{} {} at the start, the others were reduced", name,
                               entries.empty() ? "was not there" : "required no gradient")});
      return;
    }
    CauseClaim& claim =
        claims_.add(Cause::stale_hook, likely, finding_.model,
                    {fmt::format("{} had its local gradient, and every backward was armed", name),
                     "others of the model were reduced"});
    claim.against = {fmt::format("{} required a gradient at the start already", name)};
  }

  // One bucket that never fills keeps all others waiting, silently, in the first step.
  void wait_for_unused() {
    if (finds_unused() || wrapper_ == nullptr) return;
    for (const GradientResult* result : all_) {
      const RowKey last = row_key(result->tensor, result->window.back(), Stage::local);
      const Agreement locals =
          compare_ranks(context_.table().entries(last), line_of(context_, *result).group);
      if (!locals.absent.empty()) return unused(*result);
    }
  }

  // No cause has been found; what is known may help.
  void say_what_is_known(const BackwardCounts& counts) {
    if (context_.input.native || members_.empty()) return;
    std::vector<std::string> evidence;
    if (wrapper_ == nullptr) {
      evidence.push_back(
          fmt::format("no collective was seen to reduce {}, others of the model "
                      "were reduced",
                      name_of(context_, *members_.front())));
    } else if (!wrapper_->hook.empty() && counts.armed > 0) {
      evidence.push_back("the communication hook is " + wrapper_->hook);
    }
    if (evidence.empty()) return;
    claims_.add(Cause::unexplained, possible, finding_.model, std::move(evidence));
  }

  const Context& context_;
  const Finding& finding_;
  ClaimSet& claims_;
  const WrapperRecord* wrapper_;
  std::vector<const GradientResult*> all_;      // of the model
  std::vector<const GradientResult*> members_;  // of these, what the finding is about
  std::set<Kind> named_;
};

}  // namespace

void explain_unreduced(const Context& context, const std::vector<GradientResult>& results,
                       const Finding& finding, ClaimSet& claims) {
  Unreduced(context, results, finding, claims).explain();
}

std::vector<int> ranks_without_local(const Context& context, const GradientResult& result) {
  std::set<int> ranks;
  for (const Moment& moment : result.window) {
    const auto locals = context.table().entries(row_key(result.tensor, moment, Stage::local));
    const Agreement agreement = compare_ranks(locals, line_of(context, result).group);
    ranks.insert(agreement.absent.begin(), agreement.absent.end());
  }
  return {ranks.begin(), ranks.end()};
}

}  // namespace gradcheck
