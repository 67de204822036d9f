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
// and micro-steps each model ran, what each gradient was accumulated from. Models are apart: each
// has its own step and micro numbers. An event that names no model is about all of them. Nothing
// here is a judgement.

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
  bool no_sync = false;    // on some rank its backward was not to be reduced
  bool announced = false;  // some rank sent the event; otherwise a record proves the backward
};

struct StepFacts {
  std::int64_t step = 0;
  std::vector<MicroFacts> micros;  // with a backward on any rank, ascending
  std::vector<int> ran;            // ranks that ran a backward
  std::vector<int> stepped;        // ranks whose optimizer stepped
  std::vector<int> skipped;        // ranks whose optimizer skipped the step
  bool opens_afresh = true;        // the step before it is not recorded
  bool joined = false;  // some rank had run out of inputs, as DDP's join allows: not judged

  std::int64_t last_micro() const { return micros.empty() ? 0 : micros.back().micro; }
  bool is_taken() const { return !stepped.empty() || !skipped.empty(); }
};

struct ModelFacts {
  NameId model = 0;
  std::vector<StepFacts> steps;  // with a backward or an optimizer step on any rank, ascending
};

// The micro-steps whose gradients are in a gradient when the optimizer comes to it: those of the
// ranks' windows together, since a rank whose gradient was zero may call it cleared.
struct Window {
  std::vector<Moment> own;    // since an optimizer last came to it, or it was cleared
  std::vector<Moment> whole;  // since it was cleared
  bool cleared = false;       // its backwards were cleared away: nothing of them enters the step
  bool unknown_past = false;  // was not seen to be clear when recording resumed
};

using StepOfModel = std::pair<NameId, std::int64_t>;

struct Facts {
  std::vector<ModelFacts> models;  // with records, in order of first appearance
  // Of a job, models without a wrapper that one rank alone recorded, beside others: that rank. They
  // are in neither of the two lists.
  std::map<NameId, int> lone;
  std::vector<TensorId> inventory;  // required a gradient on some rank; a tied name is its owner's
  // Optimizer steps that were taken; what several ranks say alike is here once. The events belong
  // to the table.
  std::map<StepOfModel, std::vector<const EventRecord*>> taken;
  std::map<std::pair<std::int64_t, TensorId>, Window> windows;  // by step
  // What clipped or unscaled gradients, by rank and step.
  std::map<std::pair<int, std::int64_t>, std::vector<const EventRecord*>> changes;
  // Gradients that were cleared before any optimizer came to them.
  std::map<std::pair<NameId, Moment>, std::set<NameId>> dropped;
};

// `native`: ranks of our own lab, whose backwards say themselves whether they are to be reduced.
Facts arrange(const EvidenceTable& table, bool native = true);

// Of a model that is known; empty otherwise.
std::span<const StepFacts> steps_of(const Facts& facts, NameId model);

const StepFacts* find_step(const Facts& facts, NameId model, std::int64_t step);

// True if some ranks skipped the step that others took.
bool skipped_by_some(const StepFacts& step);

// True if an optimizer came to the step and no rank took it.
bool skipped_by_all(const StepFacts& step);

// The micro-steps of `step` alone; never empty: a step without any has one that was not recorded.
std::vector<Moment> own_window(const StepFacts& step);

// How many of the window's backwards ended in a reduction; at least 1.
int reductions_in(const Facts& facts, NameId model, std::span<const Moment> window);

// True if some optimizer took a gradient of this model, or of this tensor, in this step.
bool enters_step(const Facts& facts, std::int64_t step, NameId model);
bool enters_step(const EvidenceTable& table, const Facts& facts, std::int64_t step,
                 TensorId tensor);

// True if the event concerns the tensor: its `model` and `names` are empty or name it.
bool covers(const EvidenceTable& table, const EventRecord& event, TensorId tensor);

// True if the event names this model or none.
bool concerns(const EventRecord& event, std::string_view model);

// True if it is of a kind whose promises are known here: DDP's, or one whose ranks record what they
// own of each gradient.
bool is_judged(const WrapperRecord& wrapper);

// True if a wrapper of a kind that this version cannot judge owns the model.
bool is_unsupported(const EvidenceTable& table, std::string_view model);
bool any_unsupported(const EvidenceTable& table);  // some model's

RowKey row_key(TensorId tensor, Moment moment, Stage stage, TensorKind kind = TensorKind::grad);

// "model/name", the key of payloads and wants.
std::string payload_name(const EvidenceTable& table, TensorId tensor);

std::vector<int> every_rank(int world_size);

}  // namespace gradcheck
