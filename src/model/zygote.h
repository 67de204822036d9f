// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace gradcheck {

// Packets between the front and `gradcheck-rank --zygote FD` over a SOCK_SEQPACKET socket, one JSON
// object a packet. To and from JSON: model/json/zygote.h.

// The kernel passes at most 253 descriptors a message; a rank takes two.
inline constexpr int kMaxForkRanks = 120;
inline constexpr std::size_t kMaxPacketBytes = 8192;

// Zygote → front, once: LibTorch is loaded, no operator has run, no thread was started. Also what
// `gradcheck-rank --version` prints.
struct ReadyPacket {
  std::string torch;  // "2.13.0"
  bool gloo = false;
  bool nccl = false;
  bool cuda = false;
  std::int64_t pid = 0;
};

// Front → zygote. Carries 2·ranks descriptors: the channels of ranks 0..N−1, then their stderr.
struct ForkPacket {
  int ranks = 0;
};

// Zygote → front, the answer to `fork`: pids[r] is rank r.
struct StartedPacket {
  std::vector<std::int64_t> pids;
};

// Zygote → front, the other answer to `fork`: nothing was started. The zygote lives on.
struct RefusedPacket {
  std::string text;
};

// Zygote → front, one for every started rank. Exactly one of status and signal may be non-zero.
struct ExitPacket {
  int rank = 0;
  std::int64_t pid = 0;
  int status = 0;
  int signal = 0;
};

using ZygotePacket =
    std::variant<ReadyPacket, ForkPacket, StartedPacket, RefusedPacket, ExitPacket>;

}  // namespace gradcheck
