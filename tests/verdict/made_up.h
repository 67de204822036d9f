// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "model/evidence_table.h"
#include "numeric/kernel.h"
#include "verdict/judge.h"
#include "verdict/shards.h"

namespace gradcheck::made_up {

// Evidence of a training run that never happened: every rank's local gradients come from a
// function, are reduced in DDP's order (divide, then a ring sum, rounding to the dtype at every
// operation) and stepped by SGD. Tests replace one ingredient and look at the report.

using Values = std::vector<double>;
using Maybe = std::optional<Values>;  // nothing: the gradient is absent

struct Spec {
  std::string name;
  std::size_t n = 64;
};

inline double rounded(DType dtype, double x) {
  if (dtype == DType::f64) return x;
  const auto narrow = static_cast<float>(x);
  if (dtype == DType::f32 || !std::isfinite(narrow)) return narrow;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &narrow, sizeof bits);
  bits += 0x7fffU + ((bits >> 16) & 1U);  // to nearest, ties to even
  bits &= 0xffff0000U;
  float result = 0;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

inline Values rounded(DType dtype, Values values) {
  for (double& x : values) x = rounded(dtype, x);
  return values;
}

inline std::vector<std::byte> to_bytes(DType dtype, const Values& values) {
  std::vector<std::byte> bytes(values.size() * size_of(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto narrow = static_cast<float>(values[i]);
    const char* from = dtype == DType::f64 ? reinterpret_cast<const char*>(&values[i])
                                           : reinterpret_cast<const char*>(&narrow);
    if (dtype == DType::bf16) from += 2;  // the upper half of a float
    std::memcpy(bytes.data() + i * size_of(dtype), from, size_of(dtype));
  }
  return bytes;
}

inline Values normal(std::size_t n, std::uint64_t seed, double scale = 1) {
  std::mt19937_64 engine(seed * 0x9e3779b97f4a7c15U + 12345);
  std::normal_distribution<double> draw(0, scale);
  Values values(n);
  for (double& x : values) x = draw(engine);
  return values;
}

// Rank c's chunk starts at rank c and is passed around the ring once, as Gloo does it.
inline Values ring_sum(DType dtype, const std::vector<Values>& ranks) {
  Values sum(ranks.front().size());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const std::size_t first = i * ranks.size() / sum.size();
    double total = ranks[first][i];
    for (std::size_t k = 1; k < ranks.size(); ++k) {
      total = rounded(dtype, total + ranks[(first + k) % ranks.size()][i]);
    }
    sum[i] = total;
  }
  return sum;
}

inline Values times(DType dtype, Values values, double factor) {
  for (double& x : values) x = rounded(dtype, x * factor);
  return values;
}

inline Values plus(DType dtype, Values a, const Values& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = rounded(dtype, a[i] + b[i]);
  return a;
}

// What DDP does: times the rounded 1/N, then a sum.
inline Values ddp_mean(DType dtype, const std::vector<Values>& ranks) {
  std::vector<Values> divided;
  const double share = dtype == DType::f64 ? 1.0 / static_cast<double>(ranks.size())
                                           : 1.0F / static_cast<float>(ranks.size());
  for (const Values& values : ranks) divided.push_back(times(dtype, values, share));
  return ring_sum(dtype, divided);
}

struct At {
  int rank = 0;
  std::int64_t step = 0;
  std::int64_t micro = 0;
  std::size_t tensor = 0;
};

using Reduced = std::vector<Values>;  // a value for every rank

struct Recipe {
  int ranks = 2;
  std::int64_t steps = 1;
  std::int64_t micros = 1;
  DType dtype = DType::f32;
  std::vector<Spec> tensors = {{"embed", 256}, {"layer.weight", 300}, {"layer.bias", 40}};
  std::string model = "policy";
  bool wrapped = true;
  bool payloads = true;
  double learning_rate = 0.5;

  // Ingredients; each has a default.
  std::function<Maybe(const At&)> local;
  // From the accumulated gradients of all ranks to the new ones.
  std::function<Reduced(const std::vector<Values>&, const At&)> reduce;
  std::function<bool(const At&)> no_sync = [](const At&) { return false; };
  std::function<bool(const At&)> armed = [](const At&) { return true; };
  std::function<bool(const At&, Stage)> recorded = [](const At&, Stage) { return true; };
  std::function<bool(const At&, Stage)> marked = [](const At&, Stage) { return true; };
  std::function<std::string(const At&)> batch = [](const At& at) {
    return std::to_string(at.rank) + "." + std::to_string(at.step) + "." + std::to_string(at.micro);
  };
  std::function<Maybe(const At&, const Values&)> finish;  // `reduced` → `final`
  std::function<Values(const At&, const Values&)> move;   // parameter after the step
  std::function<Values(const At&)> start;
  std::function<bool(std::int64_t step)> clears = [](std::int64_t) { return true; };
  // Which part of a tensor a rank records at a stage; nothing: all of it.
  std::function<std::optional<ShardRange>(const At&, Stage)> shard;
  std::function<void(EvidenceTable&)> edit = [](EvidenceTable&) {};
};

class MadeUpRun {
 public:
  explicit MadeUpRun(Recipe recipe) : recipe_(std::move(recipe)), table_(recipe_.ranks) {
    fill_defaults();
    declare();
    for (step_ = 0; step_ < recipe_.steps; ++step_) run_step();
    for (int rank = 0; rank < recipe_.ranks; ++rank) table_.rank(rank).end = RankEnd::bye;
    recipe_.edit(table_);
    table_.finish();
  }

  ArmReport judge(const std::vector<PlanRule>& rules = {}) const {
    return gradcheck::judge({table_, rules, payloads_, recipe_.steps, recipe_.micros, true, true});
  }

  const EvidenceTable& table() const { return table_; }

 private:
  using Gradient = std::vector<Maybe>;  // a rank each

  void fill_defaults() {
    if (!recipe_.local) {
      recipe_.local = [this](const At& at) -> Maybe {
        const auto seed = static_cast<std::uint64_t>(
            ((at.step * 10 + at.micro) * 100 + static_cast<std::int64_t>(at.tensor)) * 100 +
            at.rank);
        return normal(recipe_.tensors[at.tensor].n, seed);
      };
    }
    if (!recipe_.reduce) {
      recipe_.reduce = [this](const std::vector<Values>& ranks, const At&) {
        return Reduced(ranks.size(), ddp_mean(recipe_.dtype, ranks));
      };
    }
    if (!recipe_.finish) recipe_.finish = [](const At&, const Values& values) { return values; };
    if (!recipe_.start) {
      recipe_.start = [this](const At& at) {
        return normal(recipe_.tensors[at.tensor].n, 900 + at.tensor);
      };
    }
    if (!recipe_.move) recipe_.move = [](const At&, const Values& values) { return values; };
  }

  EventRecord& event(int rank, EventType type, std::int64_t micro = 0) {
    EventRecord& added = table_.rank(rank).events.emplace_back();
    added.type = type;
    added.step = step_;
    added.micro = micro;
    added.model = recipe_.model;
    return added;
  }

  void declare() {
    gradients_.assign(recipe_.tensors.size(), Gradient(static_cast<std::size_t>(recipe_.ranks)));
    for (int rank = 0; rank < recipe_.ranks; ++rank) {
      if (!recipe_.wrapped) continue;
      WrapperRecord wrapper;
      wrapper.model = recipe_.model;
      wrapper.kind = recipe_.shard ? "zero2" : "ddp";
      wrapper.shards = recipe_.shard != nullptr;
      table_.rank(rank).wrappers.push_back(wrapper);
    }
    for (std::size_t t = 0; t < recipe_.tensors.size(); ++t) {
      auto& parameter = parameters_.emplace_back();
      for (int rank = 0; rank < recipe_.ranks; ++rank) {
        parameter.push_back(rounded(recipe_.dtype, recipe_.start({rank, 0, 0, t})));
        record({rank, 0, 0, t}, Stage::start, parameter.back());
      }
    }
    mark(0, 0, Stage::start);
  }

  void run_step() {
    for (std::int64_t micro = 0; micro < recipe_.micros; ++micro) run_micro(micro);
    const std::int64_t last = recipe_.micros - 1;
    for (std::size_t t = 0; t < recipe_.tensors.size(); ++t) {
      for (int rank = 0; rank < recipe_.ranks; ++rank) step_parameter({rank, step_, last, t});
    }
    for (int rank = 0; rank < recipe_.ranks; ++rank) event(rank, EventType::optimizer_step, last);
    mark(step_, last, Stage::final);
    mark(step_, last, Stage::after);
    for (int rank = 0; rank < recipe_.ranks; ++rank) {
      if (recipe_.clears(step_)) event(rank, EventType::grad_cleared, last);
      event(rank, EventType::step_done, last);
    }
    for (auto& gradient : gradients_) {
      if (recipe_.clears(step_)) gradient.assign(gradient.size(), std::nullopt);
    }
  }

  void run_micro(std::int64_t micro) {
    const At here{0, step_, micro, 0};
    for (int rank = 0; rank < recipe_.ranks; ++rank) {
      event(rank, EventType::batch, micro).digest = recipe_.batch({rank, step_, micro, 0});
      if (recipe_.wrapped)
        event(rank, EventType::wrapper_forward, micro).armed = recipe_.armed(here);
      EventRecord& backward = event(rank, EventType::backward, micro);
      backward.armed = recipe_.wrapped && recipe_.armed(here);
      backward.no_sync = recipe_.no_sync(here);
      backward.site = "trainer.cpp:42";
    }
    for (std::size_t t = 0; t < recipe_.tensors.size(); ++t) accumulate({0, step_, micro, t});
    mark(step_, micro, Stage::local);
    mark(step_, micro, Stage::reduced);
  }

  void accumulate(At at) {
    Gradient& gradient = gradients_[at.tensor];
    for (at.rank = 0; at.rank < recipe_.ranks; ++at.rank) {
      const Maybe local = recipe_.local(at);
      record(at, Stage::local, local ? Maybe(rounded(recipe_.dtype, *local)) : Maybe());
      if (!local) continue;
      Maybe& mine = gradient[static_cast<std::size_t>(at.rank)];
      const Values fresh = rounded(recipe_.dtype, *local);
      mine = mine ? plus(recipe_.dtype, *mine, fresh) : fresh;
    }
    at.rank = 0;
    reduce(gradient, at);
    for (at.rank = 0; at.rank < recipe_.ranks; ++at.rank) {
      record(at, Stage::reduced, gradient[static_cast<std::size_t>(at.rank)]);
    }
  }

  // A rank without a gradient contributes zeros; a gradient that nobody has stays absent.
  void reduce(Gradient& gradient, const At& at) {
    bool any = false, all = true;
    for (const Maybe& mine : gradient) {
      any |= mine.has_value();
      all &= mine.has_value();
    }
    if (!any || recipe_.no_sync(at) || !recipe_.armed(at)) return;
    std::vector<Values> filled;
    for (const Maybe& mine : gradient) {
      filled.push_back(mine.value_or(Values(recipe_.tensors[at.tensor].n)));
    }
    const Reduced reduced = recipe_.reduce(filled, at);
    for (std::size_t rank = 0; rank < gradient.size(); ++rank) gradient[rank] = reduced[rank];
  }

  void step_parameter(const At& at) {
    Values& parameter = parameters_[at.tensor][static_cast<std::size_t>(at.rank)];
    const Maybe& gradient = gradients_[at.tensor][static_cast<std::size_t>(at.rank)];
    Maybe taken;
    if (gradient) taken = recipe_.finish(at, *gradient);
    if (taken) taken = rounded(recipe_.dtype, *taken);
    record(at, Stage::final, taken);
    if (taken) {
      const Values update = times(recipe_.dtype, *taken, -recipe_.learning_rate);
      parameter = recipe_.move(at, plus(recipe_.dtype, parameter, update));
    }
    record(at, Stage::after, parameter);
  }

  void record(const At& at, Stage stage, const Maybe& values) {
    if (!recipe_.recorded(at, stage)) return;
    const bool side = stage == Stage::start || stage == Stage::after;
    TensorRecord made;
    made.step = at.step;
    made.micro = at.micro;
    made.stage = stage;
    made.kind = side ? TensorKind::param : TensorKind::grad;
    made.model = recipe_.model;
    made.name = recipe_.tensors[at.tensor].name;
    made.dtype = recipe_.dtype;
    if (side) made.requires_grad = true;
    if (values) fill(made, at, *values);
    table_.put(at.rank, made, ++sequence_);
  }

  void fill(TensorRecord& made, const At& at, const Values& whole) {
    Values values = whole;
    std::optional<ShardRange> part;
    if (recipe_.shard) part = recipe_.shard(at, made.stage);
    if (part.has_value()) {
      const auto first = whole.begin() + static_cast<std::ptrdiff_t>(part->offset);
      values.assign(first, first + static_cast<std::ptrdiff_t>(part->n));
      made.layout = "shard";
      made.shard = {part->offset, {static_cast<std::int64_t>(whole.size())}};
    }
    made.shape = {static_cast<std::int64_t>(values.size())};
    const auto& bytes = storage_.emplace_back(to_bytes(recipe_.dtype, values));
    Kernel kernel(recipe_.dtype, KernelMode::full, part ? part->offset : 0);
    kernel.update(bytes);
    made.stats = kernel.finish();
    made.state = state_of(made.stats);
    if (!recipe_.payloads) return;
    payloads_[{at.step, at.micro, made.stage, at.rank, recipe_.model + "/" + made.name}] = {
        recipe_.dtype, made.shape, bytes};
  }

  // Closes a stage on every rank with the number of tensors it did record.
  void mark(std::int64_t step, std::int64_t micro, Stage stage) {
    for (int rank = 0; rank < recipe_.ranks; ++rank) {
      std::uint64_t tensors = 0;
      for (std::size_t t = 0; t < recipe_.tensors.size(); ++t) {
        tensors += recipe_.recorded({rank, step, micro, t}, stage);
      }
      const MarkRecord mark{step, micro, stage, recipe_.model, tensors};
      if (recipe_.marked({rank, step, micro, 0}, stage)) table_.rank(rank).marks.push_back(mark);
    }
  }

  Recipe recipe_;
  EvidenceTable table_;
  PayloadViews payloads_;
  std::deque<std::vector<std::byte>> storage_;   // what the views point into
  std::vector<std::vector<Values>> parameters_;  // [tensor][rank]
  std::vector<Gradient> gradients_;              // [tensor][rank]
  std::int64_t step_ = 0;
  std::uint64_t sequence_ = 0;
};

inline ArmReport judged(Recipe recipe, const std::vector<PlanRule>& rules = {}) {
  return MadeUpRun(std::move(recipe)).judge(rules);
}

inline bool has_code(const ArmReport& arm, int code) {
  for (const Finding& finding : arm.findings) {
    if (finding.code == code) return true;
  }
  return false;
}

inline bool has_cause(const ArmReport& arm, Cause cause) {
  for (const CauseClaim& claim : arm.causes) {
    if (claim.cause == cause) return true;
  }
  return false;
}

inline const Finding* find_code_in(const ArmReport& arm, int code) {
  for (const Finding& finding : arm.findings) {
    if (finding.code == code) return &finding;
  }
  return nullptr;
}

// Changes every optimizer step of one rank.
inline void edit_steps(EvidenceTable& table, int rank,
                       const std::function<void(EventRecord&)>& change) {
  for (EventRecord& event : table.rank(rank).events) {
    if (event.type == EventType::optimizer_step) change(event);
  }
}

// For a failing test's message.
inline std::string told(const ArmReport& arm) {
  std::string text(name_of(arm.outcome));
  text += ": " + arm.headline;
  for (const Finding& finding : arm.findings) {
    text += "\n  " + code_text(finding.code) + " (" + std::string(name_of(finding.severity)) +
            ") " + finding.message;
  }
  for (const CauseClaim& claim : arm.causes)
    text += "\n  cause " + std::string(name_of(claim.cause));
  return text;
}

}  // namespace gradcheck::made_up
