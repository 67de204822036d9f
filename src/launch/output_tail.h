// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace gradcheck {

inline constexpr std::size_t kOutputTail = 4096;

// Adds to the end of what a process wrote, of which reports show the last lines.
inline void keep_tail(std::string& tail, std::string_view more) {
  if (more.size() > kOutputTail) more.remove_prefix(more.size() - kOutputTail);
  tail.append(more);
  if (tail.size() > kOutputTail) tail.erase(0, tail.size() - kOutputTail);
}

}  // namespace gradcheck
