// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/json/strict.h"
#include "model/scenario.h"

namespace gradcheck {

// A native program as it stands in scenario files and in the `run` record. Internal to model/json.

// Parts must exist; whether they go together is the lab's to say. Refused besides: a fault without
// the phase or tensor that its kind needs.
NativeProgram native_program_from(const Node& node);

// Every field, defaults included.
Json to_json(const NativeProgram& program);

}  // namespace gradcheck
