// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/plan.h"

namespace gradcheck {

// A plan as a file to commit: the rules that would declare what `lines` say, one a line, in their
// order; undeclared tensors are left out. Reads back with plan_from_json (model/json/scenario.h). A
// group of all `world_size` ranks is left out too.
std::string plan_to_json(const std::vector<PlanLine>& lines, int world_size);

}  // namespace gradcheck
