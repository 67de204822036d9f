// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace gradcheck {

// Shell-like match of a whole text: `*` any run, `?` one character, nothing else is special.
bool glob_matches(std::string_view pattern, std::string_view text);

}  // namespace gradcheck
