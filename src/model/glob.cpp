// SPDX-License-Identifier: Apache-2.0
#include "model/glob.h"

#include <cstddef>

namespace gradcheck {
namespace {

bool any_match(std::string_view globs, std::string_view name) {
  while (true) {
    const std::size_t colon = globs.find(':');
    if (glob_match(globs.substr(0, colon), name)) return true;
    if (colon == std::string_view::npos) return false;
    globs.remove_prefix(colon + 1);
  }
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text) {
  constexpr std::size_t kNone = std::string_view::npos;
  std::size_t p = 0, t = 0;
  std::size_t star = kNone, retry = 0;  // last `*` seen, and where its run ends so far
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != kNone) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == kNone;
}

bool filter_match(std::string_view filter, std::string_view name) {
  const std::size_t dash = filter.find('-');
  const std::string_view wanted = filter.substr(0, dash);
  const bool refused = dash != std::string_view::npos && any_match(filter.substr(dash + 1), name);
  return (wanted.empty() || any_match(wanted, name)) && !refused;
}

}  // namespace gradcheck
