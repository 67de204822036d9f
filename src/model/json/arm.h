// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/json/strict.h"
#include "model/scenario.h"

namespace gradcheck {

// The arms of a scenario file, each with its whole program. Internal to model/json.

// Refused: no arm, a name twice, a reference that is no other arm, and, in `program` itself or once
// a `change` is merged into it, anything but exactly one complete `native` or `command`.
std::vector<Arm> arms_from(const Node& arms, const Node& program);

}  // namespace gradcheck
