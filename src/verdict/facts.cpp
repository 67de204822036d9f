// SPDX-License-Identifier: Apache-2.0
#include "verdict/facts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace gradcheck {
namespace {

// Steps by number, micro-steps by number; StepFacts wants them as vectors.
struct Building {
  std::map<std::int64_t, bool> micros;  // micro → under no_sync on some rank
  std::set<int> stepped;
  std::set<int> skipped;
};
using Steps = std::map<std::int64_t, Building>;

void read_event(Steps& steps, int rank, const EventRecord& event) {
  if (event.type == EventType::backward) {
    steps[event.step].micros[event.micro] |= event.no_sync.value_or(false);
  } else if (event.type == EventType::optimizer_step) {
    Building& step = steps[event.step];
    (event.skipped ? step.skipped : step.stepped).insert(rank);
  }
}

Steps read_steps(const EvidenceTable& table) {
  Steps steps;
  for (int rank = 0; rank < table.world_size(); ++rank) {
    for (const EventRecord& event : table.rank(rank).events) read_event(steps, rank, event);
  }
  // A gradient that was recorded proves a backward, whether or not its event arrived.
  for (const RowKey& key : table.rows()) {
    if (key.stage == Stage::local || key.stage == Stage::reduced) {
      steps[key.step].micros.try_emplace(key.micro, false);
    }
  }
  return steps;
}

std::vector<StepFacts> flatten(const Steps& steps) {
  std::vector<StepFacts> flat;
  for (const auto& [number, building] : steps) {
    StepFacts& step = flat.emplace_back();
    step.step = number;
    for (const auto& [micro, no_sync] : building.micros) step.micros.push_back({micro, no_sync});
    step.stepped.assign(building.stepped.begin(), building.stepped.end());
    step.skipped.assign(building.skipped.begin(), building.skipped.end());
  }
  return flat;
}

// A gradient that was recorded counts even where nobody said that it was required.
bool wants_gradient(const RowKey& key, std::span<const Entry> entries) {
  return std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) {
    return entry.recorded && (key.kind == TensorKind::grad || entry.requires_grad == 1);
  });
}

// A tied name shares its owner's storage and gradient: it is compared once.
bool is_tied(std::span<const Entry> entries) {
  return std::any_of(entries.begin(), entries.end(),
                     [](const Entry& entry) { return entry.recorded && entry.tied_to != 0; });
}

void take_inventory(const EvidenceTable& table, Facts& facts) {
  std::set<NameId> models;
  std::set<TensorId> tensors;
  for (const RowKey& key : table.rows()) {
    if (models.insert(key.model).second) facts.models.push_back(key.model);
    const auto entries = table.entries(key);
    if (key.kind == TensorKind::buffer || is_tied(entries) || !wants_gradient(key, entries)) {
      continue;
    }
    const TensorId tensor{key.model, key.name};
    if (tensors.insert(tensor).second) facts.inventory.push_back(tensor);
  }
}

// A backward whose model has no row concerns no tensor.
void note_backward(const EvidenceTable& table, const EventRecord& event, Facts& facts) {
  const auto model = event.model.empty() ? std::optional<NameId>(0) : table.find_text(event.model);
  if (model) facts.backwards.insert({{event.step, event.micro}, *model});
}

void note_taken(const EventRecord& event, Facts& facts) {
  auto& taken = facts.taken[event.step];
  const bool known = std::any_of(taken.begin(), taken.end(), [&](const EventRecord* other) {
    return std::tie(other->model, other->names) == std::tie(event.model, event.names);
  });
  if (!known) taken.push_back(&event);
}

void index_events(const EvidenceTable& table, Facts& facts) {
  for (int rank = 0; rank < table.world_size(); ++rank) {
    for (const EventRecord& event : table.rank(rank).events) {
      if (event.type == EventType::backward) note_backward(table, event, facts);
      if (event.type == EventType::optimizer_step && !event.skipped) note_taken(event, facts);
    }
  }
  for (const RowKey& key : table.rows()) {
    if (key.kind == TensorKind::grad) facts.backwards.insert({{key.step, key.micro}, key.model});
  }
}

bool has_backward(const RankEvidence& rank) {
  return std::any_of(rank.events.begin(), rank.events.end(),
                     [](const EventRecord& event) { return event.type == EventType::backward; });
}

// Ranks run the same program; the first with a backward speaks for all about when things happened.
const RankEvidence& lead_rank(const EvidenceTable& table) {
  for (int rank = 0; rank < table.world_size(); ++rank) {
    if (has_backward(table.rank(rank))) return table.rank(rank);
  }
  return table.rank(0);
}

}  // namespace

Facts arrange(const EvidenceTable& table) {
  Facts facts;
  take_inventory(table, facts);
  facts.steps = flatten(read_steps(table));
  index_events(table, facts);
  return facts;
}

// A rank with two optimizers may take a step with one and skip it with the other.
bool skipped_by_some(const StepFacts& step) {
  return !step.skipped.empty() && !std::includes(step.skipped.begin(), step.skipped.end(),
                                                 step.stepped.begin(), step.stepped.end());
}

bool skipped_by_all(const StepFacts& step) { return step.stepped.empty() && !step.skipped.empty(); }

std::vector<Moment> open_window(const EvidenceTable& table, const StepFacts& step,
                                TensorId tensor) {
  std::vector<Moment> window;
  for (const EventRecord& event : lead_rank(table).events) {
    const bool ours = event.step <= step.step && covers(table, event, tensor);
    if (ours && event.type == EventType::backward) window.push_back({event.step, event.micro});
    if (ours && event.type == EventType::grad_cleared) window.clear();
    if (event.step == step.step && event.type == EventType::optimizer_step) break;
  }
  return window.empty() ? own_window(step) : window;
}

std::vector<Moment> own_window(const StepFacts& step) {
  std::vector<Moment> window;
  for (const MicroFacts& micro : step.micros) window.push_back({step.step, micro.micro});
  if (window.empty()) window.push_back({step.step, step.last_micro()});
  return window;
}

int reductions_in(const Facts& facts, std::span<const Moment> window) {
  int reductions = 0;
  for (const StepFacts& step : facts.steps) {
    for (const MicroFacts& micro : step.micros) {
      const Moment moment{step.step, micro.micro};
      const bool inside = std::find(window.begin(), window.end(), moment) != window.end();
      if (inside && !micro.no_sync) ++reductions;
    }
  }
  return std::max(1, reductions);
}

bool had_backward(const Facts& facts, NameId model, Moment moment) {
  return facts.backwards.contains({moment, 0}) || facts.backwards.contains({moment, model});
}

bool enters_step(const EvidenceTable& table, const Facts& facts, std::int64_t step, NameId model) {
  const auto taken = facts.taken.find(step);
  return taken != facts.taken.end() &&
         std::any_of(taken->second.begin(), taken->second.end(),
                     [&](const EventRecord* event) { return concerns(*event, table.text(model)); });
}

bool enters_step(const EvidenceTable& table, const Facts& facts, std::int64_t step,
                 TensorId tensor) {
  const auto taken = facts.taken.find(step);
  return taken != facts.taken.end() &&
         std::any_of(taken->second.begin(), taken->second.end(),
                     [&](const EventRecord* event) { return covers(table, *event, tensor); });
}

bool concerns(const EventRecord& event, std::string_view model) {
  return event.model.empty() || event.model == model;
}

bool covers(const EvidenceTable& table, const EventRecord& event, TensorId tensor) {
  if (!concerns(event, table.text(tensor.model))) return false;
  if (event.names.empty()) return true;
  const std::string whole = payload_name(table, tensor);
  return std::any_of(event.names.begin(), event.names.end(), [&](const std::string& name) {
    return name == table.text(tensor.name) || name == whole;
  });
}

RowKey row_key(TensorId tensor, Moment moment, Stage stage, TensorKind kind) {
  return {moment.step, moment.micro, stage, kind, tensor.model, tensor.name};
}

std::string payload_name(const EvidenceTable& table, TensorId tensor) {
  return std::string(table.text(tensor.model)) + "/" + std::string(table.text(tensor.name));
}

std::vector<int> every_rank(int world_size) {
  std::vector<int> ranks(static_cast<std::size_t>(world_size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace gradcheck
