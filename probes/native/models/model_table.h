// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/scenario.h"
#include "probes/native/models/decoder.h"

namespace gradcheck::native {

// The model `name` (model/native_parts.h) with the program's width, vocabulary and dtype. Errors:
// std::invalid_argument for what the lab cannot build.
Decoder make_model(const std::string& name, const NativeProgram& program, std::uint64_t seed);

}  // namespace gradcheck::native
