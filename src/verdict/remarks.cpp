// SPDX-License-Identifier: Apache-2.0
#include "verdict/remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "verdict/findings.h"

namespace gradcheck {
namespace {

// Did every rank say that this backward was to be reduced? Silence is no promise.
bool was_to_be_reduced(const Context& context, std::string_view model, const Moment& moment) {
  const EvidenceTable& table = context.table();
  const auto ranks = every_rank(table.world_size());
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    const auto& events = table.rank(rank).events;
    return std::any_of(events.begin(), events.end(), [&](const EventRecord& event) {
      return event.type == EventType::backward && Moment{event.step, event.micro} == moment &&
             concerns(event, model) && event.no_sync.has_value() && !*event.no_sync;
    });
  });
}

// Gradients that differed at an earlier micro-step of a window whose end was right, by moment.
std::map<Moment, std::uint64_t> late_reductions(const Context& context,
                                                const std::vector<GradientResult>& results) {
  std::map<Moment, std::uint64_t> late;
  for (const GradientResult& result : results) {
    const PlanLine& line = line_of(context, result);
    if (!result.used || result.differed || line.role != Role::shared) continue;
    for (const Moment& moment : result.window) {
      const RowKey key = row_key(result.tensor, moment, Stage::reduced);
      const bool early = moment != result.window.back() && context.table().has(key);
      if (!early || compare_ranks(context.table().entries(key), line.group).equal()) continue;
      late[moment] += was_to_be_reduced(context, line.model, moment);
    }
  }
  return late;
}

bool fits(const Context& context, const GradientResult& result, double weight) {
  const auto& group = line_of(context, result).group;
  const auto weights =
      same_weights(result.window.size(), std::vector<double>(group.size(), weight));
  return passes(ask(context, result, group.front(), weights, result.reductions));
}

struct UndeclaredFits {
  std::uint64_t mean = 0, sum = 0, neither = 0;
};

UndeclaredFits undeclared_fits(const Context& context, const std::vector<GradientResult>& results) {
  UndeclaredFits counts;
  for (const GradientResult& result : results) {
    const PlanLine& line = line_of(context, result);
    const bool asks = result.used && result.compared && !result.differed && result.proved &&
                      line.role == Role::undeclared;
    if (!asks) continue;
    if (fits(context, result, 1 / static_cast<double>(line.group.size()))) {
      ++counts.mean;
    } else {
      ++(fits(context, result, 1) ? counts.sum : counts.neither);
    }
  }
  return counts;
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
  for (const StepFacts& step : context.facts.steps) {
    if (!skipped_by_all(step)) continue;
    lines.push_back(fmt::format("step {} was skipped by every rank and proves nothing", step.step));
  }
  const UndeclaredFits fit = undeclared_fits(context, results);
  if (fit.mean + fit.sum + fit.neither > 0) {
    lines.push_back(
        fmt::format("undeclared gradients that are equal: {} fit the mean, {} the sum, "
                    "{} neither",
                    fit.mean, fit.sum, fit.neither));
  }
  return lines;
}

}  // namespace gradcheck
