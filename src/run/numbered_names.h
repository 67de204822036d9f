// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gradcheck {

// Names as people count: runs of digits are compared as numbers, rank2 before rank10. Names whose
// numbers are equal but written otherwise (02, 2) follow their text.
bool natural_less(const std::string& a, const std::string& b);

// The one number in which the names differ, of each. Nothing where they differ in anything else, or
// in several numbers, or two have the same. With `in_order` false names may stand in any order;
// otherwise they must be sorted by natural_less.
std::optional<std::vector<std::uint64_t>> series_numbers(const std::vector<std::string>& names,
                                                         bool in_order = true);

}  // namespace gradcheck
