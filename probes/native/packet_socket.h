// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "model/zygote.h"

namespace gradcheck::native {

// A packet as it came, with the descriptors that travelled with it; the receiver owns these.
struct Received {
  std::string text;
  std::vector<int> descriptors;
  bool truncated = false;  // descriptors were lost: too many, or no room for more
};

// nullopt when the other end has gone. Errors: InfrastructureError.
std::optional<Received> receive_packet(int socket);

// False when the other end has gone. Errors: InfrastructureError.
bool send_packet(int socket, const ZygotePacket& packet);

}  // namespace gradcheck::native
