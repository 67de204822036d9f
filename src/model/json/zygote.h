// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "model/zygote.h"

namespace gradcheck {

// {"type": "ready" | "fork" | "started" | "refused" | "exit", …fields by name}, without a newline.
std::string packet_to_text(const ZygotePacket& packet);

// Errors: InfrastructureError for anything that is not such an object.
ZygotePacket packet_from_text(std::string_view text);

}  // namespace gradcheck
