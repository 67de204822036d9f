// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace gradcheck {

// True if the whole text matches: `*` stands for any run of characters, `?` for one; everything
// else, brackets included, for itself. Never recursive; at worst |pattern| × |text| steps.
bool glob_match(std::string_view pattern, std::string_view text);

// googletest's filter: globs separated by `:`, then after the first `-` globs that must not match.
// "kto_*-*_single:*_bf16" takes every kto_ name but those two kinds; no globs before the `-` take
// everything.
bool filter_match(std::string_view filter, std::string_view name);

}  // namespace gradcheck
