// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "model/zygote.h"

namespace gradcheck::native {

// What this binary was built on.
std::vector<std::pair<std::string, std::string>> versions();

// The same as the zygote's first packet, with its process id.
ReadyPacket ready_packet();

}  // namespace gradcheck::native
