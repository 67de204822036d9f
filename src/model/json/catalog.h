// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/scenario.h"

namespace gradcheck {

// `gradcheck --list --format json`: [{name, file, description, ranks, steps, micro_steps, seed,
// needs, tags, arms: [{name, expected}]}].
std::string catalog_to_json(const std::vector<Scenario>& scenarios);

}  // namespace gradcheck
