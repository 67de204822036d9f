// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/evidence_table.h"

namespace gradcheck {

// What happened, read off the evidence of all ranks once: which tensors are trained, which steps
// and micro-steps ran, what each gradient was accumulated from. Nothing here is a judgement.

struct Moment {
  std::int64_t step = 0;
  std::int64_t micro = 0;
  friend auto operator<=>(const Moment&, const Moment&) = default;
};

struct TensorId {
  NameId model = 0;
  NameId name = 0;
  friend auto operator<=>(const TensorId&, const TensorId&) = default;
};

struct MicroFacts {
  std::int64_t micro = 0;
  bool no_sync = false;  // some rank ran its backward under no_sync
};

struct StepFacts {
  std::int64_t step = 0;
  std::vector<MicroFacts> micros;  // with a backward on any rank, ascending
  std::vector<int> stepped;        // ranks whose optimizer stepped
  std::vector<int> skipped;        // ranks whose optimizer skipped the step

  std::int64_t last_micro() const { return micros.empty() ? 0 : micros.back().micro; }
};

struct Facts {
  std::vector<NameId> models;       // in order of first appearance
  std::vector<TensorId> inventory;  // required a gradient on some rank; a tied name is its owner's
  std::vector<StepFacts> steps;     // with a backward or an optimizer step on any rank, ascending
  std::set<std::pair<Moment, NameId>> backwards;  // by model; 0: of a backward that names none
  // Optimizer steps that were taken, by step; what several ranks say alike is here once. The events
  // belong to the table.
  std::map<std::int64_t, std::vector<const EventRecord*>> taken;
};

Facts arrange(const EvidenceTable& table);

// True if some ranks skipped the step that others took.
bool skipped_by_some(const StepFacts& step);

// True if an optimizer came to the step and no rank took it.
bool skipped_by_all(const StepFacts& step);

// The micro-steps whose gradients are in the tensor's gradient when the optimizer takes it in
// `step`: all since it was last cleared, by the events of the first rank that ran a backward.
std::vector<Moment> open_window(const EvidenceTable& table, const StepFacts& step, TensorId tensor);

// The micro-steps of `step` alone; never empty: a step without any has one that was not recorded.
std::vector<Moment> own_window(const StepFacts& step);

// How many of the window's backwards ended in a reduction; at least 1.
int reductions_in(const Facts& facts, std::span<const Moment> window);

// True if a backward of this model ran in this micro-step, or left a gradient there.
bool had_backward(const Facts& facts, NameId model, Moment moment);

// True if some optimizer took a gradient of this model, or of this tensor, in this step.
bool enters_step(const EvidenceTable& table, const Facts& facts, std::int64_t step, NameId model);
bool enters_step(const EvidenceTable& table, const Facts& facts, std::int64_t step,
                 TensorId tensor);

// True if the event concerns the tensor: its `model` and `names` are empty or name it.
bool covers(const EvidenceTable& table, const EventRecord& event, TensorId tensor);

// True if the event names this model or none.
bool concerns(const EventRecord& event, std::string_view model);

RowKey row_key(TensorId tensor, Moment moment, Stage stage, TensorKind kind = TensorKind::grad);

// "model/name", the key of payloads and wants.
std::string payload_name(const EvidenceTable& table, TensorId tensor);

std::vector<int> every_rank(int world_size);

}  // namespace gradcheck
