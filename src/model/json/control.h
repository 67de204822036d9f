// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "model/control.h"

namespace gradcheck {

// Control records as JSON lines: {"type": "run" | "want" | "go", …}. Front and rank are built
// together, so both sides are strict.

// One line without its newline.
std::string control_to_line(const ControlRecord& record);

// Throws InfrastructureError on anything that control_to_line does not write.
ControlRecord control_from_line(std::string_view line);

}  // namespace gradcheck
