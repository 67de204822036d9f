// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/json/strict.h"
#include "model/scenario.h"

namespace gradcheck {

// Expansion of a scenario over the values of its `matrix`. Internal to model/json.

// One scenario for each combination of values; only `scenario` itself without a matrix.
// Refused: an empty list, a value twice, `dtype` of a command, more than kMaxExpansion scenarios.
std::vector<Scenario> expanded(const Scenario& scenario, const std::optional<Node>& matrix);

inline constexpr std::size_t kMaxExpansion = 1000;

// Values that stand at the top of a file and in a matrix alike.
int ranks_from(const Node& node);
std::uint64_t seed_from(const Node& node);

}  // namespace gradcheck
