// SPDX-License-Identifier: Apache-2.0
#include "verdict/windows.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace gradcheck {
namespace {

bool moves_a_window(const EventRecord& event) {
  return event.type == EventType::backward || event.type == EventType::grad_cleared ||
         event.type == EventType::optimizer_step;
}

using Events = std::vector<const EventRecord*>;

Events events_of(const RankEvidence& rank, std::string_view model) {
  Events events;
  for (const EventRecord& event : rank.events) {
    if (moves_a_window(event) && concerns(event, model)) events.push_back(&event);
  }
  return events;
}

bool tell_the_same(const Events& a, const Events& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const EventRecord* x, const EventRecord* y) {
                      return std::tie(x->type, x->step, x->micro, x->names) ==
                             std::tie(y->type, y->step, y->micro, y->names);
                    });
}

void add_moments(std::vector<Moment>& into, const std::vector<Moment>& moments) {
  into.insert(into.end(), moments.begin(), moments.end());
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

// One gradient while the events go by.
struct Open {
  std::vector<Moment> moments;  // since it was cleared
  std::size_t taken = 0;        // of these, how many an optimizer has come to
  bool unknown_past = false;

  std::vector<Moment> own() const {
    return {moments.begin() + static_cast<std::ptrdiff_t>(taken), moments.end()};
  }
};

class Walk {
 public:
  Walk(const EvidenceTable& table, const ModelFacts& model, Facts& facts)
      : table_(table), model_(model), facts_(facts) {
    for (const TensorId& tensor : facts.inventory) {
      if (tensor.model != model.model) continue;
      places_[std::string(table.text(tensor.name))] = tensors_.size();
      places_[payload_name(table, tensor)] = tensors_.size();
      tensors_.push_back(tensor);
    }
  }

  // Of one rank.
  void follow(const Events& events) {
    open_.assign(tensors_.size(), {});
    step_.reset();
    cleared_in_step_.clear();
    came_.clear();
    for (const EventRecord* event : events) take(*event);
  }

 private:
  void take(const EventRecord& event) {
    if (event.step != step_) enter(event.step);
    if (event.type == EventType::backward) {
      for (Open& open : open_) add_backward(open, {event.step, event.micro});
      return;
    }
    const bool clears = event.type == EventType::grad_cleared;
    const auto act = [&](std::size_t at) { clears ? clear(at) : come_to(at, event.step); };
    if (event.names.empty()) {
      for (std::size_t at = 0; at < open_.size(); ++at) act(at);
      return;
    }
    for (const std::string& name : event.names) {
      const auto found = places_.find(name);
      if (found != places_.end()) act(found->second);
    }
  }

  // Between recorded steps that do not follow each other anything may have been accumulated.
  void enter(std::int64_t step) {
    const bool follows = step_ ? step == *step_ + 1 : step == 0;
    if (!follows && !(step_ && step < *step_)) {
      for (Open& open : open_) open = {{}, 0, true};
    }
    step_ = step;
    cleared_in_step_.clear();
  }

  static void add_backward(Open& open, Moment moment) {
    if (open.moments.empty() || open.moments.back() != moment) open.moments.push_back(moment);
  }

  void clear(std::size_t at) {
    for (const Moment& moment : open_[at].own()) {
      facts_.dropped[{model_.model, moment}].insert(tensors_[at].name);
      cleared_in_step_.insert(at);
    }
    open_[at] = {};
  }

  // Of several optimizers that come to it in one step the first decides.
  void come_to(std::size_t at, std::int64_t step) {
    Open& open = open_[at];
    const std::pair key{step, tensors_[at]};
    Window window{open.own(), open.moments, false, open.unknown_past};
    window.cleared = window.own.empty() && cleared_in_step_.contains(at);
    open.taken = open.moments.size();
    if (!came_.insert({step, at}).second) return;
    const auto [known, is_new] = facts_.windows.try_emplace(key, window);
    if (is_new) return;
    known->second.cleared &= window.cleared;
    known->second.unknown_past |= window.unknown_past;
    add_moments(known->second.own, window.own);
    add_moments(known->second.whole, window.whole);
  }

  const EvidenceTable& table_;
  const ModelFacts& model_;
  Facts& facts_;
  std::vector<TensorId> tensors_;
  std::map<std::string, std::size_t, std::less<>> places_;
  std::vector<Open> open_;
  std::optional<std::int64_t> step_;
  std::set<std::size_t> cleared_in_step_;
  std::set<std::pair<std::int64_t, std::size_t>> came_;
};

// Ranks that tell the same story are followed once.
void read_model(const EvidenceTable& table, const ModelFacts& model, Facts& facts) {
  std::vector<Events> stories;
  Walk walk(table, model, facts);
  for (int rank = 0; rank < table.world_size(); ++rank) {
    Events events = events_of(table.rank(rank), table.text(model.model));
    const bool known = std::any_of(stories.begin(), stories.end(), [&](const Events& story) {
      return tell_the_same(story, events);
    });
    if (known || events.empty()) continue;
    walk.follow(events);
    stories.push_back(std::move(events));
  }
}

// A backward that nobody announced is proven by what it left, and cannot have been cleared.
void add_unannounced(const ModelFacts& model, Facts& facts) {
  for (const StepFacts& step : model.steps) {
    std::vector<Moment> silent;
    for (const MicroFacts& micro : step.micros) {
      if (!micro.announced) silent.push_back({step.step, micro.micro});
    }
    if (silent.empty()) continue;
    for (const TensorId& tensor : facts.inventory) {
      const auto found = facts.windows.find({step.step, tensor});
      if (tensor.model != model.model || found == facts.windows.end()) continue;
      add_moments(found->second.own, silent);
      add_moments(found->second.whole, silent);
    }
  }
}

}  // namespace

// What one rank cleared and another did not was not cleared away: `dropped` keeps what no window
// holds.
void read_windows(const EvidenceTable& table, Facts& facts) {
  for (const ModelFacts& model : facts.models) {
    read_model(table, model, facts);
    add_unannounced(model, facts);
  }
  for (const auto& [key, window] : facts.windows) {
    for (const Moment& moment : window.own) {
      const auto found = facts.dropped.find({key.second.model, moment});
      if (found != facts.dropped.end()) found->second.erase(key.second.name);
    }
  }
}

}  // namespace gradcheck
