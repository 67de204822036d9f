// SPDX-License-Identifier: Apache-2.0
#include "verdict/remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "verdict/backwards.h"
#include "verdict/findings.h"

namespace gradcheck {
namespace {

// Did every rank say that this backward was to be reduced? Silence is no promise.
bool was_to_be_reduced(const Context& context, std::string_view model, const Moment& moment) {
  const auto ranks = every_rank(context.table().world_size());
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    const auto backwards = read_backwards(context.table().rank(rank), model, context.input.native);
    return std::any_of(backwards.begin(), backwards.end(), [&](const BackwardFacts& backward) {
      const bool said = context.input.native ? backward.event->no_sync.has_value() : true;
      const bool meant = context.input.native ? backward.arming != Arming::no_sync
                                              : backward.arming == Arming::armed;
      return backward.moment == moment && said && meant;
    });
  });
}

using MomentOfModel = std::pair<NameId, Moment>;

// Gradients that differed at an earlier micro-step of a window whose end was right, by moment.
std::map<Moment, std::uint64_t> late_reductions(const Context& context,
                                                const std::vector<GradientResult>& results) {
  std::map<Moment, std::uint64_t> late;
  std::map<MomentOfModel, bool> meant;
  for (const GradientResult& result : results) {
    const PlanLine& line = line_of(context, result);
    if (!result.used || result.differed || line.role != Role::shared) continue;
    for (const Moment& moment : result.window) {
      const RowKey key = row_key(result.tensor, moment, Stage::reduced);
      const bool early = moment != result.window.back() && context.table().has(key);
      if (!early || compare_ranks(context.table().entries(key), line.group).equal()) continue;
      const auto [known, is_new] = meant.try_emplace({result.tensor.model, moment}, false);
      if (is_new) known->second = was_to_be_reduced(context, line.model, moment);
      late[moment] += known->second;
    }
  }
  return late;
}

bool was_there(const Context& context, TensorId tensor, const Moment& moment) {
  const auto locals = context.table().entries(row_key(tensor, moment, Stage::local));
  return std::any_of(locals.begin(), locals.end(), [](const Entry& entry) {
    return entry.recorded && entry.state != TensorState::absent && entry.state != TensorState::zero;
  });
}

// Models are named where there are several.
void say_what_was_skipped(const Context& context, std::vector<std::string>& lines) {
  const bool several = context.facts.models.size() > 1;
  for (const ModelFacts& model : context.facts.models) {
    const std::string of =
        several ? fmt::format(" of {}", context.table().text(model.model)) : std::string();
    for (const StepFacts& step : model.steps) {
      if (step.joined) {
        lines.push_back(
            fmt::format("step {}{} is not judged: only {} took part, the others had "
                        "joined",
                        step.step, of, ranks_text(step.ran)));
      }
      if (!skipped_by_all(step)) continue;
      lines.push_back(
          fmt::format("step {}{} was skipped by every rank and proves nothing", step.step, of));
    }
  }
}

// Cleared before any optimizer came to it; at `final` it was seen by one all the same (LBFGS).
void say_what_was_dropped(const Context& context, NameId model, const Moment& moment,
                          std::vector<std::string>& lines) {
  const auto dropped = context.facts.dropped.find({model, moment});
  if (dropped == context.facts.dropped.end()) return;
  const auto& names = dropped->second;
  const auto count = std::count_if(names.begin(), names.end(), [&](NameId name) {
    return !context.table().has(row_key({model, name}, moment, Stage::final)) &&
           was_there(context, {model, name}, moment);
  });
  if (count == 0) return;
  lines.push_back(fmt::format(
      "{} of {} at micro-step {} of step {} {} cleared before the optimizer step: not judged",
      counted(static_cast<std::uint64_t>(count), "gradient"), context.table().text(model),
      moment.micro, moment.step, count == 1 ? "was" : "were"));
}

void say_what_was_dropped(const Context& context, std::vector<std::string>& lines) {
  for (const ModelFacts& model : context.facts.models) {
    for (const StepFacts& step : model.steps) {
      if (!step.is_taken()) continue;
      for (const MicroFacts& micro : step.micros) {
        say_what_was_dropped(context, model.model, {step.step, micro.micro}, lines);
      }
    }
  }
}

// Seen, not declared.
void say_what_travelled_how(const Context& context, std::vector<std::string>& lines) {
  std::set<std::string_view> told;
  for (const PlanLine& line : context.plan.lines) {
    const WrapperRecord* wrapper = wrapper_of(context.table(), line.model);
    const bool inferred = line.wire_dtype && line.source == PlanSource::wrapper &&
                          wrapper != nullptr && wrapper->wire_dtype.empty();
    if (!inferred || !told.insert(line.model).second) continue;
    lines.push_back(fmt::format(
        "the communication hook {} of {} averages in {} by the look of the gradients: judged with "
        "that type's rounding",
        wrapper->hook, line.model, name_of(*line.wire_dtype)));
  }
}

struct FitCounts {
  std::uint64_t mean = 0, sum = 0, neither = 0;
  std::uint64_t all() const { return mean + sum + neither; }

  void add(Fits fits) {
    mean += fits == Fits::mean;
    sum += fits == Fits::sum;
    neither += fits == Fits::neither;
  }
};

void say_what_fits(const Context& context, const std::vector<GradientResult>& results,
                   std::vector<std::string>& lines) {
  FitCounts undeclared, seen;
  for (const GradientResult& result : results) {
    const bool open = line_of(context, result).role == Role::undeclared;
    (open ? undeclared : seen).add(result.fits);
  }
  if (undeclared.all() > 0) {
    lines.push_back(
        fmt::format("undeclared gradients that are equal: {} fit the mean, {} the sum, "
                    "{} neither",
                    undeclared.mean, undeclared.sum, undeclared.neither));
  }
  for (const auto& [name, count] : {std::pair("mean", seen.mean), std::pair("sum", seen.sum)}) {
    if (count == 0) continue;
    lines.push_back(fmt::format("{} of the local gradients fits {} of {} that nobody declared",
                                name, count, counted(seen.all(), "reduced gradient")));
  }
  if (seen.neither == 0) return;
  lines.push_back(fmt::format("neither mean nor sum of the local gradients fits {} of {}",
                              seen.neither, counted(seen.all(), "reduced gradient")));
}

bool has_wrapper_or_collective(const EvidenceTable& table) {
  for (const int rank : every_rank(table.world_size())) {
    const auto& events = table.rank(rank).events;
    if (!table.rank(rank).wrappers.empty()) return true;
    if (std::any_of(events.begin(), events.end(),
                    [](const EventRecord& event) { return event.type == EventType::collective; })) {
      return true;
    }
  }
  return false;
}

void say_that_nothing_reduces(const Context& context, const std::vector<GradientResult>& results,
                              std::vector<std::string>& lines) {
  const bool differs = std::any_of(results.begin(), results.end(),
                                   [](const GradientResult& r) { return r.used && r.differed; });
  if (!differs || has_wrapper_or_collective(context.table())) return;
  lines.push_back(
      "no wrapper and no collective was seen: nothing says that gradients should agree");
}

}  // namespace

std::vector<std::string> remarks(const Context& context,
                                 const std::vector<GradientResult>& results) {
  std::vector<std::string> lines;
  for (const auto& [moment, count] : late_reductions(context, results)) {
    if (count == 0) continue;
    lines.push_back(fmt::format("{} not reduced at micro-step {} of step {}, though meant to be",
                                counted(count, "gradient"), moment.micro, moment.step));
  }
  say_what_travelled_how(context, lines);
  for (const auto& [model, rank] : context.facts.lone) {
    lines.push_back(fmt::format("{} is trained on rank {} alone, without a wrapper: not checked",
                                context.table().text(model), rank));
  }
  say_what_was_skipped(context, lines);
  say_what_was_dropped(context, lines);
  say_what_fits(context, results, lines);
  if (!context.input.native) say_that_nothing_reduces(context, results, lines);
  return lines;
}

}  // namespace gradcheck
