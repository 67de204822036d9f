// SPDX-License-Identifier: Apache-2.0
#include "verdict/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace gradcheck {
namespace {

std::set<NameId> trained_models(const Facts& facts) {
  std::set<NameId> models;
  for (const TensorId& tensor : facts.inventory) models.insert(tensor.model);
  return models;
}

// --- stages

class Stages {
 public:
  Stages(const Context& context, FindingSet& findings) : context_(context), findings_(findings) {}

  void check(NameId model) {
    const auto& steps = context_.facts.steps;
    if (steps.empty()) return;
    demand(model, {steps.front().step, 0}, Stage::start);
    for (const StepFacts& step : steps) check_step(model, step);
    for (std::size_t i = 1; i < steps.size(); ++i) {
      if (has_shared_buffers(model) && has_forward(model, steps[i].step)) {
        demand(model, {steps[i].step, 0}, Stage::next_forward);
      }
    }
  }

 private:
  // `final` and `after` are due only where an optimizer stepped (verdicts.md §6). A step without
  // any backward is told by check_each_step.
  void check_step(NameId model, const StepFacts& step) {
    for (const MicroFacts& micro : step.micros) {
      const Moment moment{step.step, micro.micro};
      if (!had_backward(context_.facts, model, moment)) continue;
      demand(model, moment, Stage::local);
      demand(model, moment, Stage::reduced);
    }
    const bool taken = enters_step(context_.table(), context_.facts, step.step, model);
    if (!taken || step.micros.empty()) return;
    demand(model, {step.step, step.last_micro()}, Stage::final);
    demand(model, {step.step, step.last_micro()}, Stage::after);
  }

  // Asked of every rank: a stage that no rank closed is as missing as one that a single rank lost.
  void demand(NameId model, Moment moment, Stage stage) {
    const EvidenceTable& table = context_.table();
    std::vector<int> missing;
    for (const int rank : every_rank(table.world_size())) {
      if (!table.stage_closed(rank, model, moment.step, moment.micro, stage)) {
        missing.push_back(rank);
      }
    }
    if (missing.empty()) return;
    findings_.say(stage == Stage::local ? 603 : 604,
                  fmt::format("stage `{}` of step {}, micro-step {} is incomplete on {}",
                              name_of(stage), moment.step, moment.micro, ranks_text(missing)),
                  missing, table.text(model));
  }

  template <class Predicate>
  bool any_event(Predicate predicate) const {
    for (const int rank : every_rank(context_.table().world_size())) {
      const auto& events = context_.table().rank(rank).events;
      if (std::any_of(events.begin(), events.end(), predicate)) return true;
    }
    return false;
  }

  bool has_forward(NameId model, std::int64_t step) const {
    const auto name = context_.table().text(model);
    return any_event([&](const EventRecord& event) {
      return event.type == EventType::wrapper_forward && event.step == step &&
             concerns(event, name);
    });
  }

  // Without such buffers there is nothing that a next forward could prove.
  bool has_shared_buffers(NameId model) const {
    const auto name = context_.table().text(model);
    const auto& lines = context_.plan.lines;
    return std::any_of(lines.begin(), lines.end(), [&](const PlanLine& line) {
      return line.model == name && (line.buffers == BufferPolicy::must_equal ||
                                    line.buffers == BufferPolicy::broadcast_before_forward);
    });
  }

  const Context& context_;
  FindingSet& findings_;
};

// --- steps

void check_micro_steps(const StepFacts& step, std::int64_t micro_steps, FindingSet& findings) {
  const auto ran = static_cast<std::int64_t>(step.micros.size());
  if (ran > 0 && ran != micro_steps) {
    findings.add({604,
                  "",
                  "",
                  step.step,
                  {},
                  fmt::format("{} of {} micro-steps were recorded", ran, micro_steps)});
  }
}

// What each step lacks. A step that every rank skipped lacks nothing, and proves nothing.
void check_each_step(const Context& context, FindingSet& findings) {
  for (const StepFacts& step : context.facts.steps) {
    if (step.micros.empty() && !step.stepped.empty()) {
      findings.add(
          {604, "", "", step.step, step.stepped,
           fmt::format("step {} was taken, but no gradient of it was recorded", step.step)});
    }
    if (context.input.native) check_micro_steps(step, context.input.micro_steps, findings);
    if (!skipped_by_some(step)) continue;
    findings.add(
        {804, "", "", step.step, step.skipped,
         fmt::format("step {} was skipped by {} only", step.step, ranks_text(step.skipped))});
  }
}

// Skipped steps count: a rank that skips one has still come to it.
int steps_of(const RankEvidence& rank) {
  std::set<std::int64_t> steps;
  for (const EventRecord& event : rank.events) {
    if (event.type == EventType::optimizer_step) steps.insert(event.step);
  }
  return static_cast<int>(steps.size());
}

void check_steps(const Context& context, FindingSet& findings) {
  const EvidenceTable& table = context.table();
  std::vector<int> counts;
  for (const int rank : every_rank(table.world_size()))
    counts.push_back(steps_of(table.rank(rank)));
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  if (*least != *most) {
    std::vector<int> behind;
    for (const int rank : every_rank(table.world_size())) {
      if (counts[static_cast<std::size_t>(rank)] == *least) behind.push_back(rank);
    }
    findings.say(804,
                 fmt::format("{} took {} where others took {}", ranks_text(behind),
                             counted(static_cast<std::uint64_t>(*least), "optimizer step"), *most),
                 behind);
  }
  if (context.input.native && *most < context.input.steps) {
    findings.say(604, fmt::format("{} of {} steps were recorded", *most, context.input.steps));
  }
}

// Native steps count from 0 without a gap.
void check_step_numbers(const Context& context, FindingSet& findings) {
  std::int64_t expected = 0;
  for (const StepFacts& step : context.facts.steps) {
    if (step.step != expected) {
      findings.say(604, fmt::format("step {} follows where step {} is due", step.step, expected));
      return;
    }
    ++expected;
  }
}

// Native ranks announce every batch and every backward; without, neither the data nor what armed
// the reduction is known.
void check_announced(const Context& context, EventType type, FindingSet& findings) {
  std::set<std::tuple<int, std::int64_t, std::int64_t>> announced;
  for (const int rank : every_rank(context.table().world_size())) {
    for (const EventRecord& event : context.table().rank(rank).events) {
      if (event.type == type) announced.insert({rank, event.step, event.micro});
    }
  }
  std::vector<int> silent;
  for (const int rank : every_rank(context.table().world_size())) {
    for (const StepFacts& step : context.facts.steps) {
      for (const MicroFacts& micro : step.micros) {
        const bool known = announced.contains({rank, step.step, micro.micro});
        if (!known && (silent.empty() || silent.back() != rank)) silent.push_back(rank);
      }
    }
  }
  if (silent.empty()) return;
  findings.say(604, fmt::format("{} did not announce every {}", ranks_text(silent), name_of(type)),
               silent);
}

// Ranks that recorded a gradient but stand outside the group that it is judged in.
void check_groups(const Context& context, FindingSet& findings) {
  std::set<int> left_out;
  std::uint64_t count = 0;
  for (const RowKey& row : context.table().rows()) {
    if (row.kind != TensorKind::grad || row.stage != Stage::reduced) continue;
    const auto& group = context.plan.line({row.model, row.name}).group;
    const auto entries = context.table().entries(row);
    bool any = false;
    for (const int rank : every_rank(context.table().world_size())) {
      const bool inside = std::find(group.begin(), group.end(), rank) != group.end();
      if (inside || !entries[static_cast<std::size_t>(rank)].recorded) continue;
      left_out.insert(rank);
      any = true;
    }
    count += any;
  }
  if (left_out.empty()) return;
  const std::vector<int> ranks(left_out.begin(), left_out.end());
  findings.say(604,
               fmt::format("{} recorded {} that the plan's groups leave out", ranks_text(ranks),
                           counted(count, "gradient")),
               ranks);
}

// --- data

using Digests = std::map<Moment, std::map<std::string, std::set<int>>>;  // ranks by input digest

// Digests are compared as sets: ranks may take the same batches in another order.
Digests batches(const Context& context, std::span<const int> group) {
  Digests digests;
  for (const int rank : group) {
    for (const EventRecord& event : context.table().rank(rank).events) {
      if (event.type != EventType::batch || event.digest.empty()) continue;
      digests[{event.step, event.micro}][event.digest].insert(rank);
    }
  }
  return digests;
}

// The groups over which gradients are reduced: their ranks must have data of their own.
std::set<std::vector<int>> data_groups(const Context& context) {
  std::set<std::vector<int>> groups;
  for (const PlanLine& line : context.plan.lines) {
    if (is_auditable(line) && line.group.size() > 1) groups.insert(line.group);
  }
  return groups;
}

void check_data(const Context& context, FindingSet& findings) {
  std::set<int> ranks;
  std::optional<Moment> first;
  for (const auto& group : data_groups(context)) {
    for (const auto& [moment, digests] : batches(context, group)) {
      for (const auto& [digest, sharing] : digests) {
        if (sharing.size() < 2) continue;
        ranks.insert(sharing.begin(), sharing.end());
        first = first ? std::min(*first, moment) : moment;
      }
    }
  }
  if (!first) return;
  const std::vector<int> sharing(ranks.begin(), ranks.end());
  findings.say(601,
               fmt::format("ranks were given the same data: {} (first at step {}, "
                           "micro-step {})",
                           ranks_text(sharing), first->step, first->micro),
               sharing);
}

}  // namespace

void find_gaps(const Context& context, FindingSet& findings) {
  Stages stages(context, findings);
  for (const NameId model : trained_models(context.facts)) stages.check(model);
  check_steps(context, findings);
  check_each_step(context, findings);
  check_data(context, findings);
  check_groups(context, findings);
  if (!context.input.native) return;
  check_step_numbers(context, findings);
  check_announced(context, EventType::batch, findings);
  check_announced(context, EventType::backward, findings);
}

}  // namespace gradcheck
