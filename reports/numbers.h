// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gradcheck {

// Numbers as people read them. The decimal point is a point in every locale.

std::string short_number(double value);                        // 5.9e-02, 0, nan, inf
std::string short_number(const std::optional<double>& value);  // unset: "?"
std::string share_number(double value);  // of a bound: 0.2, 0.03, 12.5, 1.0e+04
std::string seconds(double value);       // "0.9 s", "3 min 20 s"
std::string bytes_text(double bytes);    // "640 B", "1.2 GB": powers of ten
std::string plural(std::int64_t count, std::string_view noun);  // "1 rank", "2 ranks"

}  // namespace gradcheck
