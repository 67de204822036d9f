// SPDX-License-Identifier: Apache-2.0
#include "reports/numbers.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace gradcheck {

std::string short_number(double value) {
  if (std::isnan(value)) return "nan";
  return value == 0 ? "0" : fmt::format("{:.1e}", value);
}

std::string short_number(const std::optional<double>& value) {
  return value ? short_number(*value) : "?";
}

std::string share_number(double value) {
  const double size = std::fabs(value);
  if (!std::isfinite(value) || size == 0) return short_number(value);
  if (size < 0.01 || size >= 1000) return fmt::format("{:.1e}", value);
  return size < 0.1 ? fmt::format("{:.2f}", value) : fmt::format("{:.1f}", value);
}

std::string seconds(double value) {
  if (!std::isfinite(value)) return "? s";
  if (value < 60) return fmt::format("{:.1f} s", value);
  const double whole = std::round(value);
  const double minutes = std::floor(whole / 60);
  return fmt::format("{:.0f} min {:.0f} s", minutes, whole - 60 * minutes);
}

std::string bytes_text(double bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  if (!std::isfinite(bytes)) return short_number(bytes) + " B";
  std::size_t unit = 0;
  while (std::fabs(bytes) >= 1000 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string plural(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace gradcheck
