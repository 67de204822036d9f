// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/json/strict.h"
#include "model/scenario.h"

namespace gradcheck {

// A native program as it stands in scenario files and in the `run` record. Internal to model/json.

// Parts must exist; whether they go together is not looked at. Refused besides: a fault without the
// phase, tensor or stage that its kind needs. A program without a path gets default_path().
NativeProgram native_program_from(const Node& node);

// As above, and the path must go with wrapper and loss: what scenario files are held to.
NativeProgram fitting_program_from(const Node& node);

// Every field, defaults included.
Json to_json(const NativeProgram& program);

}  // namespace gradcheck
