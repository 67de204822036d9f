// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/verdict/made_up.h"

namespace gradcheck::made_up {

// Evidence as an unmodified job leaves it: several models with step numbers of their own, of which
// some are recorded; stages and events in the order in which the agent sends them. A test plays the
// training loop, call by call, on all ranks at once.

class Job {
 public:
  explicit Job(int ranks = 2) : table_(ranks) {
    for (int rank = 0; rank < ranks; ++rank) table_.rank(rank).end = RankEnd::bye;
  }

  int ranks() const { return table_.world_size(); }
  EvidenceTable& table() { return table_; }

  ArmReport judge(const std::vector<PlanRule>& rules = {},
                  std::optional<int> program_status = std::nullopt) {
    table_.finish();
    return gradcheck::judge({table_, rules, {}, 0, 0, false, true, program_status});
  }

  std::uint64_t next() { return ++sequence_; }

 private:
  EvidenceTable table_;
  std::uint64_t sequence_ = 0;
};

// How a micro-step runs.
struct Micro {
  bool armed = true;     // a forward of the wrapper arms the reduction
  bool no_sync = false;  // the wrapper's forward under no_sync
  bool bare = false;     // and then a forward of the inner module with gradients on
  bool reduced = true;   // where armed: what the reducer does in the end
  std::vector<std::string> escapes = {};  // tensors that it leaves alone
  std::string data = {};                  // batch digest; empty: the rank's own
  std::function<Maybe(int rank, std::size_t tensor)> local = {};
  std::function<Values(const std::vector<Values>&)> reduce = {};
};

using Gradients = std::vector<std::vector<Maybe>>;  // [tensor][rank]

class JobModel {
 public:
  JobModel(Job& job, std::string name, bool wrapped = true,
           std::vector<std::string> tensors = {"body.weight", "body.bias", "head.weight"})
      : job_(job), name_(std::move(name)), wrapped_(wrapped), names_(std::move(tensors)) {
    const auto ranks = static_cast<std::size_t>(job.ranks());
    gradients_.assign(names_.size(), std::vector<Maybe>(ranks));
    for (std::size_t t = 0; t < names_.size(); ++t) {
      parameters_.emplace_back(ranks, normal(kSize, 900 + t));
    }
    if (!wrapped) return;
    for_ranks([this](int rank) {
      WrapperRecord wrapper;
      wrapper.model = name_;
      wrapper.kind = "ddp";
      job_.table().rank(rank).wrappers.push_back(wrapper);
    });
  }

  static constexpr std::size_t kSize = 120;

  Gradients& gradients() { return gradients_; }
  std::vector<std::vector<Values>>& parameters() { return parameters_; }
  const std::vector<std::string>& names() const { return names_; }
  // The first names that exist and train; the others come later.
  std::optional<std::size_t> first_tensors;
  std::vector<std::string> frozen_at_start;  // requires_grad is false there
  std::function<bool(int rank)> takes_part = [](int) { return true; };

  // The first call, and one that leaves numbers out, record `start`.
  void begin(std::int64_t step) {
    const bool fresh = !step_ || *step_ + 1 != step;
    step_ = step;
    micro_ = -1;
    if (fresh) record(Stage::start, 0);
  }

  void zero_grad() {
    for (auto& gradient : gradients_) gradient.assign(gradient.size(), std::nullopt);
  }

  void backward(const Micro& how = {}) {
    ++micro_;
    for_ranks([&](int rank) { forward(rank, how); });
    for_ranks([&](int rank) { announce_clear(rank); });
    for_ranks([&](int rank) {
      EventRecord& backward = event(rank, EventType::backward);
      backward.armed = how.armed && wrapped_;
      backward.no_sync = how.no_sync;
      backward.site = "train.py:42";
    });
    for (std::size_t t = 0; t < count(); ++t) accumulate(t, how);
    mark(Stage::local, micro_);
    if (wrapped_) record_reduced();
  }

  // The lazy record of models without a wrapper.
  void record_reduced() { record(Stage::reduced, micro_); }

  void collective(const std::string& reduce, const std::vector<std::string>& names,
                  double factor = 1) {
    for_ranks([&](int rank) {
      EventRecord& made = event(rank, EventType::collective);
      made.op = "all_reduce";
      made.reduce = reduce;
      made.names = names;
    });
    for (std::size_t t = 0; t < count(); ++t) {
      const bool ours = std::find(names.begin(), names.end(), names_[t]) != names.end();
      if (ours) sum(t, factor);
    }
  }

  // Adds up over the ranks in Gloo's order, times a factor.
  void sum(std::size_t tensor, double factor = 1) {
    std::vector<Values> ranks;
    for (const Maybe& mine : gradients_[tensor]) ranks.push_back(mine.value_or(Values(kSize)));
    const Values total = times(DType::f32, ring_sum(DType::f32, ranks), factor);
    for (Maybe& mine : gradients_[tensor]) mine = total;
  }

  void clip(int rank, double norm, double max_norm) {
    EventRecord& made = event(rank, EventType::clip);
    made.norm = norm;
    made.max_norm = max_norm;
    scale(rank, std::min(1.0, max_norm / (norm + 1e-6)));
  }

  void unscale(int rank, double by) {
    event(rank, EventType::unscale).scale = by;
    scale(rank, 1 / by);
  }

  void scale(int rank, double factor) {
    for (auto& gradient : gradients_) {
      Maybe& mine = gradient[static_cast<std::size_t>(rank)];
      if (mine) mine = times(DType::f32, *mine, static_cast<float>(factor));
    }
  }

  void step(double learning_rate = 0.5) {
    micro_ = std::max<std::int64_t>(micro_, 0);
    record(Stage::final, micro_);
    for (std::size_t t = 0; t < count(); ++t) {
      for_ranks([&](int rank) {
        const auto at = static_cast<std::size_t>(rank);
        const Maybe& mine = gradients_[t][at];
        if (!mine) return;
        Values& parameter = parameters_[t][at];
        parameter = plus(DType::f32, parameter, times(DType::f32, *mine, -learning_rate));
      });
    }
    for_ranks([&](int rank) { event(rank, EventType::optimizer_step); });
    record(Stage::after, micro_);
  }

  void skip(const std::vector<int>& ranks) {
    for (const int rank : ranks) event(rank, EventType::optimizer_step).skipped = true;
  }

  EventRecord& event(int rank, EventType type) {
    EventRecord& added = job_.table().rank(rank).events.emplace_back();
    added.type = type;
    added.step = *step_;
    added.micro = std::max<std::int64_t>(micro_, 0);
    added.model = name_;
    return added;
  }

 private:
  void for_ranks(const std::function<void(int)>& act) {
    for (int rank = 0; rank < job_.ranks(); ++rank) {
      if (takes_part(rank)) act(rank);
    }
  }

  std::size_t count() const { return first_tensors.value_or(names_.size()); }

  void forward(int rank, const Micro& how) {
    if (wrapped_ && (how.armed || how.no_sync)) {
      EventRecord& outer = event(rank, EventType::wrapper_forward);
      outer.armed = how.armed;
      outer.grad_mode = true;
      outer.no_sync = how.no_sync;
    }
    if (how.bare) {
      EventRecord& inner = event(rank, EventType::inner_forward);
      inner.grad_mode = true;
      inner.site = "train.py:41";
    }
    event(rank, EventType::batch).digest = how.data.empty() ? name_ + std::to_string(rank) + "." +
                                                                  std::to_string(*step_) + "." +
                                                                  std::to_string(micro_)
                                                            : how.data;
  }

  // What is clear when a backward begins and was not said to be.
  void announce_clear(int rank) {
    std::vector<std::string> clear;
    for (std::size_t t = 0; t < count(); ++t) {
      if (!gradients_[t][static_cast<std::size_t>(rank)]) clear.push_back(names_[t]);
    }
    if (clear.empty()) return;
    EventRecord& made = event(rank, EventType::grad_cleared);
    if (clear.size() < count()) made.names = clear;
  }

  Maybe local_of(int rank, std::size_t tensor, const Micro& how) const {
    if (how.local) return how.local(rank, tensor);
    const auto seed = static_cast<std::uint64_t>(
        ((*step_ * 10 + micro_) * 100 + static_cast<std::int64_t>(tensor)) * 100 + rank);
    return normal(kSize, seed + std::hash<std::string>()(name_) % 1000 * 1'000'000);
  }

  void accumulate(std::size_t tensor, const Micro& how) {
    auto& gradient = gradients_[tensor];
    for_ranks([&](int rank) {
      Maybe local = local_of(rank, tensor, how);
      if (local) local = rounded(DType::f32, *local);
      put(rank, Stage::local, micro_, tensor, local);
      if (!local) return;
      Maybe& mine = gradient[static_cast<std::size_t>(rank)];
      mine = mine ? plus(DType::f32, *mine, *local) : *local;
    });
    const bool any = std::any_of(gradient.begin(), gradient.end(),
                                 [](const Maybe& mine) { return mine.has_value(); });
    const auto& free = how.escapes;
    const bool escapes = std::find(free.begin(), free.end(), names_[tensor]) != free.end();
    if (!wrapped_ || !how.armed || !how.reduced || !any || escapes) return;
    std::vector<Values> ranks;
    for (const Maybe& mine : gradient) ranks.push_back(mine.value_or(Values(kSize)));
    const Values value = how.reduce ? how.reduce(ranks) : ddp_mean(DType::f32, ranks);
    for (Maybe& mine : gradient) mine = value;
  }

  void record(Stage stage, std::int64_t micro) {
    const bool side = stage == Stage::start || stage == Stage::after;
    for (std::size_t t = 0; t < count(); ++t) {
      for_ranks([&](int rank) {
        const auto at = static_cast<std::size_t>(rank);
        put(rank, stage, micro, t, side ? Maybe(parameters_[t][at]) : gradients_[t][at]);
      });
    }
    mark(stage, micro);
  }

  bool is_frozen(std::size_t tensor, Stage stage) const {
    return stage == Stage::start && std::find(frozen_at_start.begin(), frozen_at_start.end(),
                                              names_[tensor]) != frozen_at_start.end();
  }

  void put(int rank, Stage stage, std::int64_t micro, std::size_t tensor, const Maybe& values) {
    const bool side = stage == Stage::start || stage == Stage::after;
    TensorRecord made;
    made.step = *step_;
    made.micro = micro;
    made.stage = stage;
    made.kind = side ? TensorKind::param : TensorKind::grad;
    made.model = name_;
    made.name = names_[tensor];
    if (stage == Stage::start) made.requires_grad = !is_frozen(tensor, stage);
    if (values) {
      made.shape = {static_cast<std::int64_t>(values->size())};
      made.stats = measure(DType::f32, to_bytes(DType::f32, *values));
      made.state = state_of(made.stats);
    }
    job_.table().put(rank, made, job_.next());
  }

  void mark(Stage stage, std::int64_t micro) {
    for_ranks([&](int rank) {
      job_.table().rank(rank).marks.push_back({*step_, micro, stage, name_, count()});
    });
  }

  Job& job_;
  std::string name_;
  bool wrapped_;
  std::vector<std::string> names_;
  Gradients gradients_;
  std::vector<std::vector<Values>> parameters_;
  std::optional<std::int64_t> step_;
  std::int64_t micro_ = -1;
};

// One plain step: clear, one backward, step.
inline void train(JobModel& model, std::int64_t step, const Micro& how = {}) {
  model.begin(step);
  model.zero_grad();
  model.backward(how);
  model.step();
}

inline bool has_note(const ArmReport& arm, const std::string& part) {
  return std::any_of(arm.notes.begin(), arm.notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

inline std::string told_with_notes(const ArmReport& arm) {
  std::string text = told(arm);
  for (const std::string& note : arm.notes) text += "\n  note: " + note;
  for (const CauseClaim& claim : arm.causes) {
    for (const std::string& line : claim.evidence) {
      text += "\n  " + std::string(name_of(claim.cause)) + ": " + line;
    }
  }
  return text;
}

inline const CauseClaim* find_cause(const ArmReport& arm, Cause cause, const std::string& model) {
  for (const CauseClaim& claim : arm.causes) {
    if (claim.cause == cause && claim.model == model) return &claim;
  }
  return nullptr;
}

}  // namespace gradcheck::made_up
