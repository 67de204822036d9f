// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/scenario.h"
#include "probes/native/models/qwen3.h"

namespace gradcheck::native {

// The model that `program` names, with its width and dtype (names: model/native_parts.h). Errors:
// std::invalid_argument for what the lab cannot build.
Qwen3 make_model(const NativeProgram& program, std::uint64_t seed);

}  // namespace gradcheck::native
