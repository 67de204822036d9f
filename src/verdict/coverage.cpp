// SPDX-License-Identifier: Apache-2.0
#include "verdict/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "verdict/same_data.h"

namespace gradcheck {
namespace {

std::set<NameId> trained_models(const Facts& facts) {
  std::set<NameId> models;
  for (const TensorId& tensor : facts.inventory) models.insert(tensor.model);
  return models;
}

// Ranks outside a job's wrapper's group need not run its model.
std::vector<int> ranks_that_train(const Context& context, NameId model) {
  const EvidenceTable& table = context.table();
  const WrapperRecord* wrapper =
      context.input.native ? nullptr : wrapper_of(table, table.text(model));
  return wrapper == nullptr ? every_rank(table.world_size())
                            : ranks_of_group(table, wrapper->group);
}

// --- stages

class Stages {
 public:
  Stages(const Context& context, FindingSet& findings) : context_(context), findings_(findings) {}

  // `after` of the step before stands for `start` where both are recorded.
  void check(NameId model) {
    const StepFacts* before = nullptr;
    for (const StepFacts& step : steps_of(context_.facts, model)) {
      if (!is_judged(step)) continue;
      const bool opens = before == nullptr || (!native() && step.opens_afresh);
      if (opens) demand(model, {step.step, 0}, Stage::start);
      check_step(model, step);
      if (!opens && has_shared_buffers(model) && has_forward(model, step.step)) {
        demand(model, {step.step, 0}, Stage::next_forward);
      }
      before = &step;
    }
  }

 private:
  bool native() const { return context_.input.native; }

  // Of a job's last backwards, which no optimizer step followed, nothing is asked.
  bool is_judged(const StepFacts& step) const {
    return native() || (step.is_taken() && !step.joined);
  }

  // `final` and `after` are due only where an optimizer stepped (verdicts.md §6). A step without
  // any backward is told by check_each_step. Without a wrapper nothing is reduced between the
  // backwards of a step, so that only the last one's `reduced` is due.
  void check_step(NameId model, const StepFacts& step) {
    const bool each =
        native() || wrapper_of(context_.table(), context_.table().text(model)) != nullptr;
    for (const MicroFacts& micro : step.micros) {
      const Moment moment{step.step, micro.micro};
      demand(model, moment, Stage::local);
      if (each || micro.micro == step.last_micro()) demand(model, moment, Stage::reduced);
    }
    if (!enters_step(context_.facts, step.step, model) || step.micros.empty()) return;
    demand(model, {step.step, step.last_micro()}, Stage::final);
    demand(model, {step.step, step.last_micro()}, Stage::after);
  }

  // Asked of every rank that trains the model: a stage that no rank closed is as missing as one
  // that a single rank lost.
  void demand(NameId model, Moment moment, Stage stage) {
    const EvidenceTable& table = context_.table();
    std::vector<int> missing;
    for (const int rank : ranks_that_train(context_, model)) {
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

// The last step of an epoch may have fewer.
std::int64_t micro_steps_of(const JudgeInput& input, const StepFacts& step) {
  const bool last = step.step + 1 == input.steps;
  return last && input.remainder > 0 ? input.remainder : input.micro_steps;
}

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

// Native runs have one model, which need not be named.
std::string_view name_in_findings(const Context& context, NameId model) {
  return context.input.native ? std::string_view() : context.table().text(model);
}

// What a step lacks. A step that every rank skipped lacks nothing, and proves nothing.
void check_one_step(const Context& context, NameId model, const StepFacts& step,
                    FindingSet& findings) {
  const auto name = name_in_findings(context, model);
  if (step.micros.empty() && !step.stepped.empty()) {
    findings.add({604, name, "", step.step, step.stepped,
                  fmt::format("step {} was taken, but no gradient of it was recorded", step.step)});
  }
  if (context.input.native) check_micro_steps(step, micro_steps_of(context.input, step), findings);
  if (!skipped_by_some(step)) return;
  findings.add(
      {804, name, "", step.step, step.skipped,
       fmt::format("step {} was skipped by {} only", step.step, ranks_text(step.skipped))});
}

void check_each_step(const Context& context, FindingSet& findings) {
  for (const NameId model : trained_models(context.facts)) {
    for (const StepFacts& step : steps_of(context.facts, model)) {
      check_one_step(context, model, step, findings);
    }
  }
}

// Models that were trained and of which no tensor was recorded. Their names are in events only.
void check_silent_models(const Context& context, FindingSet& findings) {
  const EvidenceTable& table = context.table();
  std::set<std::string> names;
  for (const int rank : every_rank(table.world_size())) {
    for (const EventRecord& event : table.rank(rank).events) {
      const bool trains = event.type == EventType::backward ||
                          (event.type == EventType::optimizer_step && !event.skipped);
      const bool known = event.model.empty() || table.find_text(event.model).has_value();
      if (trains && !known && !is_unsupported(table, event.model)) names.insert(event.model);
    }
  }
  for (const std::string& name : names) {
    findings.say(604, name + " was trained, but none of its tensors was recorded", {}, name);
  }
}

// Skipped steps count: a rank that skips one has still come to it.
using StepCounts = std::map<int, std::int64_t>;  // by rank

StepCounts count_steps(const EvidenceTable& table, const std::vector<int>& ranks,
                       std::optional<std::string_view> model) {
  StepCounts counts;
  for (const int rank : ranks) {
    std::set<std::int64_t> steps;
    for (const EventRecord& event : table.rank(rank).events) {
      const bool ours = !model || concerns(event, *model);
      if (event.type == EventType::optimizer_step && ours) steps.insert(event.step);
    }
    counts[rank] = static_cast<std::int64_t>(steps.size());
  }
  return counts;
}

std::int64_t most_of(const StepCounts& counts) {
  std::int64_t most = 0;
  for (const auto& [rank, count] : counts) most = std::max(most, count);
  return most;
}

void compare_counts(const StepCounts& counts, std::string_view model, FindingSet& findings) {
  const std::int64_t most = most_of(counts);
  std::int64_t least = most;
  for (const auto& [rank, count] : counts) least = std::min(least, count);
  if (least == most) return;
  std::vector<int> behind;
  for (const auto& [rank, count] : counts) {
    if (count == least) behind.push_back(rank);
  }
  const std::string of = model.empty() ? "" : fmt::format(" of {}", model);
  findings.say(804,
               fmt::format("{} took {}{} where others took {}", ranks_text(behind),
                           counted(static_cast<std::uint64_t>(least), "optimizer step"), of, most),
               behind, model);
}

void check_native_steps(const Context& context, FindingSet& findings) {
  const EvidenceTable& table = context.table();
  const auto counts = count_steps(table, every_rank(table.world_size()), std::nullopt);
  compare_counts(counts, "", findings);
  if (most_of(counts) < context.input.steps) {
    findings.say(604,
                 fmt::format("{} of {} steps were recorded", most_of(counts), context.input.steps));
  }
}

// Under DDP's join counts may differ.
void check_job_steps(const Context& context, FindingSet& findings) {
  const EvidenceTable& table = context.table();
  for (const NameId model : trained_models(context.facts)) {
    const auto steps = steps_of(context.facts, model);
    const bool joined =
        std::any_of(steps.begin(), steps.end(), [](const StepFacts& step) { return step.joined; });
    if (joined) continue;
    const auto ranks = ranks_that_train(context, model);
    compare_counts(count_steps(table, ranks, table.text(model)), table.text(model), findings);
  }
}

std::set<std::int64_t> all_steps(const Facts& facts) {
  std::set<std::int64_t> steps;
  for (const ModelFacts& model : facts.models) {
    for (const StepFacts& step : model.steps) steps.insert(step.step);
  }
  return steps;
}

std::set<Moment> all_micros(const Facts& facts) {
  std::set<Moment> moments;
  for (const ModelFacts& model : facts.models) {
    for (const StepFacts& step : model.steps) {
      for (const MicroFacts& micro : step.micros) moments.insert({step.step, micro.micro});
    }
  }
  return moments;
}

// Native steps count from 0 without a gap.
void check_step_numbers(const Context& context, FindingSet& findings) {
  std::int64_t expected = 0;
  for (const std::int64_t step : all_steps(context.facts)) {
    if (step != expected) {
      findings.say(604, fmt::format("step {} follows where step {} is due", step, expected));
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
    const auto moments = all_micros(context.facts);
    const bool known = std::all_of(moments.begin(), moments.end(), [&](const Moment& moment) {
      return announced.contains({rank, moment.step, moment.micro});
    });
    if (!known) silent.push_back(rank);
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
    if (!context.plan.has({row.model, row.name})) continue;
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

}  // namespace

void find_gaps(const Context& context, FindingSet& findings) {
  const bool native = context.input.native;
  Stages stages(context, findings);
  for (const NameId model : trained_models(context.facts)) stages.check(model);
  (native ? check_native_steps : check_job_steps)(context, findings);
  check_each_step(context, findings);
  find_same_data(context, findings);
  check_groups(context, findings);
  if (!native) return check_silent_models(context, findings);
  check_step_numbers(context, findings);
  check_announced(context, EventType::batch, findings);
  check_announced(context, EventType::backward, findings);
}

}  // namespace gradcheck
