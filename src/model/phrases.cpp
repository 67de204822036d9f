// SPDX-License-Identifier: Apache-2.0
#include "model/phrases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>  // sigabbrev_np

namespace gradcheck {

std::string ranks_text(std::span<const int> ranks) {
  if (ranks.empty()) return "";
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

std::string signal_text(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

}  // namespace gradcheck
