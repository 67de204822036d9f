// SPDX-License-Identifier: Apache-2.0
#include "verdict/seen_reductions.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <tuple>

#include "verdict/agreement.h"

namespace gradcheck {
namespace {

enum class Adds { no, sum, mean };

// As torch.distributed spells them: "all_reduce", "ReduceOp.SUM", "avg".
Adds kind_of(const EventRecord& event) {
  const bool reduces = event.op.find("all_reduce") != std::string::npos ||
                       event.op.find("allreduce") != std::string::npos;
  if (event.type != EventType::collective || !reduces) return Adds::no;
  std::string word = event.reduce.substr(event.reduce.rfind('.') + 1);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word == "sum" ? Adds::sum : word == "avg" || word == "mean" ? Adds::mean : Adds::no;
}

// A group that nobody described is not known; no name means all ranks.
std::vector<int> group_of(const EvidenceTable& table, const EventRecord& event) {
  if (event.group.empty()) return every_rank(table.world_size());
  return find_group(table, event.group).value_or(std::vector<int>());
}

std::vector<int> merged(std::vector<int> a, const std::vector<int>& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());
  a.erase(std::unique(a.begin(), a.end()), a.end());
  return a;
}

class Collectives {
 public:
  Collectives(const EvidenceTable& table, const Facts& facts) : table_(table) {
    for (const TensorId& tensor : facts.inventory) {
      places_.emplace(payload_name(table, tensor), tensor);
    }
  }

  std::map<TensorId, SeenReduction> read() {
    for (int rank = 0; rank < table_.world_size(); ++rank) {
      for (const EventRecord& event : table_.rank(rank).events) {
        if (!event.names.empty() && kind_of(event) != Adds::no) take(event);
      }
    }
    return std::move(seen_);
  }

 private:
  // Reduced in two stages (within a node, then across) the ranks of both belong together.
  void take(const EventRecord& event) {
    const auto group = group_of(table_, event);
    if (group.empty()) return;
    const bool averages = kind_of(event) == Adds::mean;
    for (const std::string& name : event.names) {
      const auto place = find(event.model, name);
      if (place == places_.end()) continue;
      const auto [known, is_new] = seen_.try_emplace(place->second, SeenReduction{group, averages});
      if (is_new) continue;
      known->second.averages &= averages;
      known->second.group = merged(known->second.group, group);
    }
  }

  std::map<std::string, TensorId>::const_iterator find(const std::string& model,
                                                       const std::string& name) const {
    const auto found = places_.find(name);
    return found != places_.end() ? found : places_.find(model + "/" + name);
  }

  const EvidenceTable& table_;
  std::map<std::string, TensorId> places_;
  std::map<TensorId, SeenReduction> seen_;
};

// Recorded on all ranks of the group, somewhere not zero.
bool is_there(std::span<const Entry> entries, const Agreement& agreement) {
  return agreement.complete() && agreement.absent.empty() && !agreement.present.empty() &&
         std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
           return entry.recorded && entry.state == TensorState::finite;
         });
}

// Equal bits out of different locals: only communication makes them.
bool is_seen_reduced(const EvidenceTable& table, const StepFacts& step, TensorId tensor,
                     const std::vector<int>& group) {
  const auto moments = own_window(step);
  const bool distinct = std::any_of(moments.begin(), moments.end(), [&](const Moment& moment) {
    const Agreement locals =
        compare_ranks(table.entries(row_key(tensor, moment, Stage::local)), group);
    return locals.complete() && !locals.equal();
  });
  const auto equal_at = [&](Stage stage) {
    const auto entries = table.entries(row_key(tensor, moments.back(), stage));
    const Agreement values = compare_ranks(entries, group);
    return is_there(entries, values) && values.equal();
  };
  return distinct && (equal_at(Stage::reduced) || equal_at(Stage::final));
}

bool starts_equal(const EvidenceTable& table, std::span<const StepFacts> steps, TensorId tensor,
                  const std::vector<int>& group) {
  if (steps.empty()) return false;
  const RowKey start = row_key(tensor, {steps.front().step, 0}, Stage::start, TensorKind::param);
  const Agreement agreement = compare_ranks(table.entries(start), group);
  return agreement.complete() && !agreement.present.empty() && agreement.equal();
}

// The group over which more than half of the model's gradients were reduced; empty if none.
std::vector<int> group_of_most(const EvidenceTable& table, const Facts& facts, const Plan& plan,
                               const ModelFacts& model) {
  std::map<std::vector<int>, std::size_t> counts;
  std::size_t all = 0;
  const auto world = every_rank(table.world_size());
  for (const TensorId& tensor : facts.inventory) {
    if (tensor.model != model.model) continue;
    ++all;
    const PlanLine& line = plan.line(tensor);
    if (line.source == PlanSource::collective) {
      ++counts[line.group];
    } else if (std::any_of(model.steps.begin(), model.steps.end(), [&](const StepFacts& step) {
                 return is_seen_reduced(table, step, tensor, world);
               })) {
      ++counts[world];
    }
  }
  for (const auto& [group, count] : counts) {
    if (2 * count > all) return group;
  }
  return {};
}

}  // namespace

std::map<TensorId, SeenReduction> read_collectives(const EvidenceTable& table, const Facts& facts) {
  return Collectives(table, facts).read();
}

void infer_from_siblings(const EvidenceTable& table, const Facts& facts, Plan& plan) {
  for (const ModelFacts& model : facts.models) {
    if (wrapper_of(table, table.text(model.model)) != nullptr) continue;
    const auto group = group_of_most(table, facts, plan, model);
    if (group.size() < 2) continue;
    for (const TensorId& tensor : facts.inventory) {
      PlanLine& line = plan.lines[plan.index.at(tensor)];
      const bool open = tensor.model == model.model && line.source == PlanSource::none;
      if (!open || !starts_equal(table, model.steps, tensor, group)) continue;
      line.source = PlanSource::siblings;
      line.role = Role::shared;
      line.group = group;
    }
  }
}

}  // namespace gradcheck
