// SPDX-License-Identifier: Apache-2.0
#include "verdict/plan.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "model/glob.h"
#include "verdict/seen_reductions.h"
#include "verdict/wires.h"

namespace gradcheck {
namespace {

std::vector<int> sorted(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

// A divisor says more than the word: DDP's mean divides by its group, a hook may divide by less.
void take_reduction(PlanLine& line, const WrapperRecord& wrapper) {
  line.reduction = reduction_from_name(wrapper.reduce).value_or(Reduction::unknown);
  if (wrapper.divide > 0) {
    const bool is_mean = wrapper.divide == static_cast<double>(line.group.size());
    line.reduction = is_mean ? Reduction::mean : Reduction::factor;
    line.factor = 1 / wrapper.divide;
  }
  if (!wrapper.wire_dtype.empty()) line.wire_dtype = dtype_from_name(wrapper.wire_dtype);
}

// An ignored tensor stays undeclared: the wrapper disclaims it. So do all tensors of a wrapper of a
// kind whose promises are not known here.
void take_wrapper(const EvidenceTable& table, PlanLine& line, const WrapperRecord& wrapper) {
  if (!is_judged(wrapper)) return;
  const auto& ignored = wrapper.ignored;
  if (std::find(ignored.begin(), ignored.end(), line.name) != ignored.end()) return;
  line.source = PlanSource::wrapper;
  line.group = ranks_of_group(table, wrapper.group);
  if (line.kind == TensorKind::buffer) {
    line.buffers = buffer_policy_from_name(wrapper.buffers).value_or(BufferPolicy::undeclared);
    return;
  }
  line.role = wrapper.shards && line.kind == TensorKind::grad ? Role::sharded : Role::shared;
  take_reduction(line, wrapper);
}

// Of an all-reduce that sums nobody knows whether the program divides afterwards.
void take_seen(PlanLine& line, const SeenReduction& seen) {
  line.source = PlanSource::collective;
  line.role = Role::shared;
  line.reduction = seen.averages ? Reduction::mean : Reduction::unknown;
  line.group = seen.group;
}

// A rule that says how a gradient is reduced says by it that the tensor is shared.
void take_rule(PlanLine& line, const PlanRule& rule, int world_size) {
  line.source = PlanSource::declared;
  if (is_group_of(rule.group, world_size)) line.group = sorted(rule.group);
  if (rule.buffers) line.buffers = *rule.buffers;
  if (rule.reduction) {
    line.reduction = *rule.reduction;
    line.factor = rule.factor;
  }
  if (rule.wire_dtype) line.wire_dtype = rule.wire_dtype;
  const bool silent = line.role == Role::undeclared && rule.reduction.has_value();
  if (rule.role || silent) line.role = rule.role.value_or(Role::shared);
}

// Order in the scenario is precedence.
const PlanRule* first_match(const std::vector<PlanRule>& rules, const PlanLine& line) {
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const PlanRule& rule) {
    return glob_match(rule.model, line.model) && glob_match(rule.tensor, line.name);
  });
  return found == rules.end() ? nullptr : &*found;
}

std::string tied_owner(const EvidenceTable& table, const RowKey& key) {
  for (const Entry& entry : table.entries(key)) {
    if (entry.recorded && entry.tied_to != 0) return std::string(table.text(entry.tied_to));
  }
  return {};
}

// A wrapped parameter is frozen if some rank says that it requires no gradient; a tied name moves
// with its owner.
bool is_frozen(const EvidenceTable& table, const RowKey& key) {
  const auto entries = table.entries(key);
  return key.kind == TensorKind::param && tied_owner(table, key).empty() &&
         std::any_of(entries.begin(), entries.end(),
                     [](const Entry& entry) { return entry.requires_grad == 0; });
}

class Planner {
 public:
  Planner(const EvidenceTable& table, const std::vector<PlanRule>& rules,
          std::map<TensorId, SeenReduction> seen)
      : table_(table), rules_(rules), seen_(std::move(seen)) {}

  void add_gradient(TensorId tensor) {
    PlanLine line = blank(tensor, TensorKind::grad);
    // One rank reduces nothing: its gradient must be what it accumulated, whoever wraps it.
    if (table_.world_size() == 1) {
      line.role = Role::shared;
      line.reduction = Reduction::mean;
    }
    add(tensor, std::move(line));
  }

  void add_other(const RowKey& key) {
    PlanLine line = blank({key.model, key.name}, key.kind);
    line.tied_to = tied_owner(table_, key);
    const bool frozen = is_frozen(table_, key);
    PlanLine& added = add({key.model, key.name}, std::move(line));
    if (frozen && added.role == Role::shared) added.role = Role::frozen;
  }

  bool has(TensorId tensor) const { return plan_.has(tensor); }

  Plan take() { return std::move(plan_); }

 private:
  PlanLine blank(TensorId tensor, TensorKind kind) const {
    PlanLine line;
    line.model = table_.text(tensor.model);
    line.name = table_.text(tensor.name);
    line.kind = kind;
    line.group = every_rank(table_.world_size());
    return line;
  }

  PlanLine& add(TensorId tensor, PlanLine line) {
    const WrapperRecord* wrapper = wrapper_of(table_, line.model);
    if (wrapper != nullptr) take_wrapper(table_, line, *wrapper);
    const auto seen = seen_.find(tensor);
    const bool open = line.role == Role::undeclared && line.kind == TensorKind::grad;
    if (open && seen != seen_.end()) take_seen(line, seen->second);
    const PlanRule* rule = first_match(rules_, line);
    if (rule != nullptr) take_rule(line, *rule, table_.world_size());
    plan_.index.emplace(tensor, plan_.lines.size());
    return plan_.lines.emplace_back(std::move(line));
  }

  const EvidenceTable& table_;
  const std::vector<PlanRule>& rules_;
  std::map<TensorId, SeenReduction> seen_;
  Plan plan_;
};

}  // namespace

Plan infer_plan(const EvidenceTable& table, const Facts& facts, const std::vector<PlanRule>& rules,
                bool native) {
  const bool infers = !native && table.world_size() > 1;
  Planner planner(table, rules,
                  infers ? read_collectives(table, facts) : std::map<TensorId, SeenReduction>());
  for (const TensorId& tensor : facts.inventory) planner.add_gradient(tensor);
  for (const RowKey& key : table.rows()) {
    const bool known = planner.has({key.model, key.name}) || facts.lone.contains(key.model);
    if (key.kind != TensorKind::grad && !known) planner.add_other(key);
  }
  Plan plan = planner.take();
  if (infers) infer_from_siblings(table, facts, plan);
  if (infers) infer_wires(table, facts, plan);
  return plan;
}

bool is_declared_shared(const PlanLine& line) {
  return line.role == Role::shared || line.role == Role::frozen;
}

double declared_weight(const PlanLine& line) {
  if (line.reduction == Reduction::sum) return 1;
  if (line.reduction == Reduction::factor) return line.factor;
  return 1 / static_cast<double>(line.group.size());
}

bool is_auditable(const PlanLine& line) {
  return (line.role == Role::shared || line.role == Role::sharded) &&
         (line.reduction == Reduction::mean || line.reduction == Reduction::sum ||
          line.reduction == Reduction::factor);
}

bool is_unknown(const PlanLine& line) {
  return line.kind == TensorKind::grad && line.role == Role::shared &&
         line.reduction == Reduction::unknown;
}

bool is_group_of(std::span<const int> ranks, int world_size) {
  const std::set<int> distinct(ranks.begin(), ranks.end());
  return !distinct.empty() && distinct.size() == ranks.size() && *distinct.begin() >= 0 &&
         *distinct.rbegin() < world_size;
}

std::optional<std::vector<int>> find_group(const EvidenceTable& table, std::string_view name) {
  for (int rank = 0; rank < table.world_size(); ++rank) {
    for (const GroupRecord& group : table.rank(rank).groups) {
      if (group.name != name || !is_group_of(group.ranks, table.world_size())) continue;
      return sorted(group.ranks);
    }
  }
  return std::nullopt;
}

std::vector<int> ranks_of_group(const EvidenceTable& table, std::string_view name) {
  return find_group(table, name).value_or(every_rank(table.world_size()));
}

const WrapperRecord* wrapper_of(const EvidenceTable& table, std::string_view model) {
  for (int rank = 0; rank < table.world_size(); ++rank) {
    for (const WrapperRecord& wrapper : table.rank(rank).wrappers) {
      if (wrapper.model == model) return &wrapper;
    }
  }
  return nullptr;
}

}  // namespace gradcheck
