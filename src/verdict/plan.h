// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/evidence_table.h"
#include "model/plan.h"
#include "verdict/facts.h"

namespace gradcheck {

// What is believed about every tensor and why (verdicts.md §1): the scenario's rules first, then
// the wrapper that owns the tensor, then, in jobs, what was seen to reduce its gradient or those of
// its siblings; what none covers is undeclared.
struct Plan {
  std::vector<PlanLine> lines;  // in row order: trained tensors, frozen parameters, buffers
  std::map<TensorId, std::size_t> index;

  const PlanLine& line(TensorId tensor) const { return lines[index.at(tensor)]; }
  bool has(TensorId tensor) const { return index.contains(tensor); }
};

// `native` ranks declare all that they do: nothing is inferred from what is seen.
Plan infer_plan(const EvidenceTable& table, const Facts& facts, const std::vector<PlanRule>& rules,
                bool native = true);

// True if somebody declared that the tensor is replicated, so that a difference is an error.
bool is_declared_shared(const PlanLine& line);

// Declared weight of one rank's gradient in the reduced value: 1/N for mean, 1 for sum, k for a
// factor. Requires a reduction that can be audited.
double declared_weight(const PlanLine& line);

bool is_auditable(const PlanLine& line);  // mean, sum or factor of a shared or sharded tensor

// True if the ranks are a set, not empty, of ranks of the world.
bool is_group_of(std::span<const int> ranks, int world_size);

// True if the gradient is shared and its reduction may be found out, though nobody declared it.
bool is_unknown(const PlanLine& line);

// The ranks of a named group, ascending, by the first rank that described it rightly.
std::optional<std::vector<int>> find_group(const EvidenceTable& table, std::string_view name);

// The same; the whole world where no rank did.
std::vector<int> ranks_of_group(const EvidenceTable& table, std::string_view name);

// The wrapper of a model, by the first rank that recorded one; null if there is none.
const WrapperRecord* wrapper_of(const EvidenceTable& table, std::string_view model);

}  // namespace gradcheck
