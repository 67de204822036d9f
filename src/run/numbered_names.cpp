// SPDX-License-Identifier: Apache-2.0
#include "run/numbered_names.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace gradcheck {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Runs of digits and what stands between them, in turn; the first is never of digits.
std::vector<std::string_view> pieces_of(std::string_view name) {
  std::vector<std::string_view> pieces;
  bool digits = false;
  std::size_t start = 0;
  for (std::size_t at = 0; at <= name.size(); ++at) {
    if (at < name.size() && is_digit(name[at]) == digits) continue;
    pieces.push_back(name.substr(start, at - start));
    start = at;
    digits = !digits;
  }
  return pieces;
}

std::string_view without_zeros(std::string_view digits) {
  const std::size_t first = std::min(digits.find_first_not_of('0'), digits.size());
  return digits.substr(first);
}

// Of digits, however many: a longer number without leading zeros is the larger one.
int compare_numbers(std::string_view a, std::string_view b) {
  a = without_zeros(a);
  b = without_zeros(b);
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return a.compare(b);
}

std::optional<std::uint64_t> number_from(std::string_view digits) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

using Pieces = std::vector<std::string_view>;

// The place in which any name differs from the first; nothing where there are several, or none.
std::optional<std::size_t> varying_place(const std::vector<Pieces>& names) {
  std::optional<std::size_t> place;
  for (const Pieces& pieces : names) {
    if (pieces.size() != names.front().size()) return std::nullopt;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i] == names.front()[i]) continue;
      const bool number = i % 2 == 1;
      if (!number || (place && *place != i)) return std::nullopt;
      place = i;
    }
  }
  return place;
}

}  // namespace

bool natural_less(const std::string& a, const std::string& b) {
  const Pieces left = pieces_of(a), right = pieces_of(b);
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    const int order = i % 2 == 1 ? compare_numbers(left[i], right[i]) : left[i].compare(right[i]);
    if (order != 0) return order < 0;
  }
  if (left.size() != right.size()) return left.size() < right.size();
  return a < b;
}

std::optional<std::vector<std::uint64_t>> series_numbers(const std::vector<std::string>& names,
                                                         bool in_order) {
  std::vector<Pieces> pieces;
  for (const std::string& name : names) pieces.push_back(pieces_of(name));
  if (pieces.size() < 2) return std::nullopt;
  const auto place = varying_place(pieces);
  if (!place) return std::nullopt;
  std::vector<std::uint64_t> numbers;
  for (const Pieces& name : pieces) {
    const auto number = number_from(name[*place]);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  std::vector<std::uint64_t> sorted = numbers;
  std::sort(sorted.begin(), sorted.end());
  const bool distinct = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  if (!distinct || (in_order && sorted != numbers)) return std::nullopt;
  return numbers;
}

}  // namespace gradcheck
