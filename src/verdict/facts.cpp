// SPDX-License-Identifier: Apache-2.0
#include "verdict/facts.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "verdict/backwards.h"
#include "verdict/windows.h"

namespace gradcheck {
namespace {

// Steps by number, micro-steps by number; StepFacts wants them as vectors.
struct Building {
  std::map<std::int64_t, MicroFacts> micros;
  std::set<int> ran;
  std::set<int> stepped;
  std::set<int> skipped;
};
using Steps = std::map<std::int64_t, Building>;

MicroFacts& micro_at(Steps& steps, const Moment& moment) {
  MicroFacts& micro = steps[moment.step].micros[moment.micro];
  micro.micro = moment.micro;
  return micro;
}

void read_rank(Steps& steps, int rank, const RankEvidence& evidence, std::string_view model,
               bool native) {
  for (const BackwardFacts& backward : read_backwards(evidence, model, native)) {
    MicroFacts& micro = micro_at(steps, backward.moment);
    micro.announced = true;
    micro.no_sync |= backward.arming == Arming::no_sync;
    steps[backward.moment.step].ran.insert(rank);
  }
  for (const EventRecord& event : evidence.events) {
    if (event.type != EventType::optimizer_step || !concerns(event, model)) continue;
    Building& step = steps[event.step];
    (event.skipped ? step.skipped : step.stepped).insert(rank);
  }
}

std::vector<StepFacts> flatten(const Steps& steps) {
  std::vector<StepFacts> flat;
  for (const auto& [number, building] : steps) {
    StepFacts step;
    step.step = number;
    for (const auto& [number_of_micro, micro] : building.micros) step.micros.push_back(micro);
    step.ran.assign(building.ran.begin(), building.ran.end());
    step.stepped.assign(building.stepped.begin(), building.stepped.end());
    step.skipped.assign(building.skipped.begin(), building.skipped.end());
    step.opens_afresh = flat.empty() || flat.back().step + 1 != number;
    flat.push_back(std::move(step));
  }
  return flat;
}

// DDP's join lets ranks run out of inputs; the agent says of which models it is in use.
bool is_joined(const EvidenceTable& table, std::string_view model) {
  for (int rank = 0; rank < table.world_size(); ++rank) {
    const auto& events = table.rank(rank).events;
    if (std::any_of(events.begin(), events.end(), [model](const EventRecord& event) {
          return event.type == EventType::note && event.text == "join" && concerns(event, model);
        })) {
      return true;
    }
  }
  return false;
}

// Under join a step that not all ranks of the model ran is not judged.
void mark_joined(std::vector<StepFacts>& steps) {
  std::set<int> ranks;
  for (const StepFacts& step : steps) ranks.insert(step.ran.begin(), step.ran.end());
  for (StepFacts& step : steps) step.joined = !step.ran.empty() && step.ran.size() < ranks.size();
}

// A gradient that was recorded proves a backward, whether or not its event arrived.
std::map<NameId, Steps> steps_in_rows(const EvidenceTable& table) {
  std::map<NameId, Steps> steps;
  for (const RowKey& key : table.rows()) {
    if (key.stage == Stage::local || key.stage == Stage::reduced) {
      micro_at(steps[key.model], {key.step, key.micro});
    }
  }
  return steps;
}

void read_steps(const EvidenceTable& table, bool native, Facts& facts) {
  auto in_rows = steps_in_rows(table);
  for (ModelFacts& model : facts.models) {
    Steps& steps = in_rows[model.model];
    for (int rank = 0; rank < table.world_size(); ++rank) {
      read_rank(steps, rank, table.rank(rank), table.text(model.model), native);
    }
    model.steps = flatten(steps);
    if (is_joined(table, table.text(model.model))) mark_joined(model.steps);
  }
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
  std::set<NameId> unsupported;
  std::set<TensorId> tensors;
  for (const RowKey& key : table.rows()) {
    if (models.insert(key.model).second) {
      facts.models.push_back({key.model, {}});
      if (is_unsupported(table, table.text(key.model))) unsupported.insert(key.model);
    }
    const auto entries = table.entries(key);
    if (key.kind == TensorKind::buffer || is_tied(entries) || !wants_gradient(key, entries)) {
      continue;
    }
    const TensorId tensor{key.model, key.name};
    if (unsupported.contains(key.model)) continue;
    if (tensors.insert(tensor).second) facts.inventory.push_back(tensor);
  }
}

template <class Predicate>
bool any_wrapper(const EvidenceTable& table, Predicate predicate) {
  for (int rank = 0; rank < table.world_size(); ++rank) {
    const auto& wrappers = table.rank(rank).wrappers;
    if (std::any_of(wrappers.begin(), wrappers.end(), predicate)) return true;
  }
  return false;
}

// Two of them are as good as all.
std::set<int> ranks_with(const EvidenceTable& table, NameId model) {
  std::set<int> ranks;
  for (const RowKey& key : table.rows()) {
    if (key.model != model || ranks.size() > 1) continue;
    const auto entries = table.entries(key);
    for (std::size_t rank = 0; rank < entries.size(); ++rank) {
      if (entries[rank].recorded) ranks.insert(static_cast<int>(rank));
    }
  }
  for (int rank = 0; rank < table.world_size(); ++rank) {
    const auto& events = table.rank(rank).events;
    const bool named = std::any_of(events.begin(), events.end(), [&](const EventRecord& event) {
      return event.model == table.text(model);
    });
    if (named) ranks.insert(rank);
  }
  return ranks;
}

// A probe, say, that only one rank trains: there is nobody to compare it with.
void set_lone_models_aside(const EvidenceTable& table, Facts& facts) {
  std::set<NameId> trained;
  for (const TensorId& tensor : facts.inventory) trained.insert(tensor.model);
  for (const NameId model : trained) {
    const auto ranks = ranks_with(table, model);
    const auto text = table.text(model);
    const bool wrapped =
        any_wrapper(table, [&](const WrapperRecord& wrapper) { return wrapper.model == text; });
    if (ranks.size() == 1 && !wrapped) facts.lone[model] = *ranks.begin();
  }
  std::set<int> ranks;
  for (const auto& [model, rank] : facts.lone) ranks.insert(rank);
  // On several ranks it may be one model under several names.
  if (facts.lone.size() == trained.size() || ranks.size() > 1) facts.lone.clear();
  const auto is_lone = [&](const auto& part) { return facts.lone.contains(part.model); };
  std::erase_if(facts.models, is_lone);
  std::erase_if(facts.inventory, is_lone);
}

void note_taken(const EventRecord& event, std::vector<const EventRecord*>& taken) {
  const bool known = std::any_of(taken.begin(), taken.end(), [&](const EventRecord* other) {
    return std::tie(other->model, other->names) == std::tie(event.model, event.names);
  });
  if (!known) taken.push_back(&event);
}

void index_events(const EvidenceTable& table, Facts& facts) {
  for (const ModelFacts& model : facts.models) {
    for (int rank = 0; rank < table.world_size(); ++rank) {
      for (const EventRecord& event : table.rank(rank).events) {
        const bool takes = event.type == EventType::optimizer_step && !event.skipped;
        if (!takes || !concerns(event, table.text(model.model))) continue;
        note_taken(event, facts.taken[{model.model, event.step}]);
      }
    }
  }
}

void index_changes(const EvidenceTable& table, Facts& facts) {
  for (int rank = 0; rank < table.world_size(); ++rank) {
    for (const EventRecord& event : table.rank(rank).events) {
      const bool changes = event.type == EventType::clip || event.type == EventType::unscale;
      if (changes) facts.changes[{rank, event.step}].push_back(&event);
    }
  }
}

}  // namespace

Facts arrange(const EvidenceTable& table, bool native) {
  Facts facts;
  take_inventory(table, facts);
  if (!native && table.world_size() > 1) set_lone_models_aside(table, facts);
  read_steps(table, native, facts);
  index_events(table, facts);
  index_changes(table, facts);
  read_windows(table, facts);
  return facts;
}

std::span<const StepFacts> steps_of(const Facts& facts, NameId model) {
  const auto found = std::find_if(facts.models.begin(), facts.models.end(),
                                  [model](const ModelFacts& m) { return m.model == model; });
  return found == facts.models.end() ? std::span<const StepFacts>() : found->steps;
}

const StepFacts* find_step(const Facts& facts, NameId model, std::int64_t step) {
  const auto steps = steps_of(facts, model);
  const auto found =
      std::lower_bound(steps.begin(), steps.end(), step,
                       [](const StepFacts& a, std::int64_t number) { return a.step < number; });
  return found == steps.end() || found->step != step ? nullptr : &*found;
}

// A rank with two optimizers may take a step with one and skip it with the other.
bool skipped_by_some(const StepFacts& step) {
  return !step.skipped.empty() && !std::includes(step.skipped.begin(), step.skipped.end(),
                                                 step.stepped.begin(), step.stepped.end());
}

bool skipped_by_all(const StepFacts& step) { return step.stepped.empty() && !step.skipped.empty(); }

std::vector<Moment> own_window(const StepFacts& step) {
  std::vector<Moment> window;
  for (const MicroFacts& micro : step.micros) window.push_back({step.step, micro.micro});
  if (window.empty()) window.push_back({step.step, step.last_micro()});
  return window;
}

int reductions_in(const Facts& facts, NameId model, std::span<const Moment> window) {
  int reductions = 0;
  for (const Moment& moment : window) {
    const StepFacts* step = find_step(facts, model, moment.step);
    if (step == nullptr) continue;
    reductions += static_cast<int>(std::count_if(
        step->micros.begin(), step->micros.end(),
        [&](const MicroFacts& micro) { return micro.micro == moment.micro && !micro.no_sync; }));
  }
  return std::max(1, reductions);
}

bool enters_step(const Facts& facts, std::int64_t step, NameId model) {
  return facts.taken.contains({model, step});
}

bool enters_step(const EvidenceTable& table, const Facts& facts, std::int64_t step,
                 TensorId tensor) {
  const auto taken = facts.taken.find({tensor.model, step});
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

bool is_judged(const WrapperRecord& wrapper) { return wrapper.kind == "ddp" || wrapper.shards; }

bool is_unsupported(const EvidenceTable& table, std::string_view model) {
  return any_wrapper(table, [&](const WrapperRecord& wrapper) {
    return wrapper.model == model && !is_judged(wrapper);
  });
}

bool any_unsupported(const EvidenceTable& table) {
  return any_wrapper(table, [](const WrapperRecord& wrapper) { return !is_judged(wrapper); });
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
