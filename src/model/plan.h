// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/dtype.h"
#include "model/record.h"

namespace gradcheck {

// What each tensor should be, and who says so (verdicts.md §1).

enum class Role : std::uint8_t {
  shared,      // replicated over its group; gradient reduced as `reduction` says
  sharded,     // each rank owns a part
  frozen,      // must not move
  rank_local,  // differs by design
  undeclared,
};

enum class Reduction : std::uint8_t { mean, sum, factor, none, lossy, unknown };

enum class BufferPolicy : std::uint8_t {
  must_equal,
  broadcast_before_forward,
  rank_local,
  undeclared,
};

enum class PlanSource : std::uint8_t {
  declared,    // --plan FILE or the scenario
  placement,   // a DTensor's placements
  wrapper,     // the wrapper that owns the tensor
  collective,  // the collective that was seen to reduce its gradient
  siblings,    // starts equal, most tensors of its optimizer are reduced over one group
  none,
};

std::string_view name_of(Role role);
std::string_view name_of(Reduction reduction);
std::string_view name_of(BufferPolicy policy);
std::string_view name_of(PlanSource source);
std::optional<Role> role_from_name(std::string_view name);
std::optional<Reduction> reduction_from_name(std::string_view name);
std::optional<BufferPolicy> buffer_policy_from_name(std::string_view name);
std::optional<PlanSource> plan_source_from_name(std::string_view name);

// One rule of a scenario's `plan`. A tensor takes the first rule whose globs match; fields left
// empty fall back to what the wrapper says.
struct PlanRule {
  std::string model = "*";   // glob over model names
  std::string tensor = "*";  // glob over tensor names
  std::optional<Role> role;
  std::optional<Reduction> reduction;
  double factor = 1;       // of Reduction::factor: the reduced value is factor × Σ locals
  std::vector<int> group;  // empty: every rank
  std::optional<DType> wire_dtype;
  std::optional<BufferPolicy> buffers;
};

// What is believed about one tensor.
struct PlanLine {
  std::string model;
  std::string name;
  TensorKind kind = TensorKind::grad;  // grad (of a trainable parameter), param or buffer
  Role role = Role::undeclared;
  Reduction reduction = Reduction::unknown;
  double factor = 1;
  std::vector<int> group;  // ranks, ascending
  std::optional<DType> wire_dtype;
  BufferPolicy buffers = BufferPolicy::undeclared;
  std::string tied_to;
  PlanSource source = PlanSource::none;
};

}  // namespace gradcheck
