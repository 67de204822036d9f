// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/json/strict.h"
#include "model/plan.h"
#include "model/scenario.h"

namespace gradcheck {

// One rule of a `plan` array. Refused besides unknown words: a rule that declares nothing, `factor`
// without the reduction `factor` or the reverse. Internal to model/json.
PlanRule plan_rule_from(const Node& node);

// The whole array.
std::vector<PlanRule> plan_from(const Node& node);

}  // namespace gradcheck
