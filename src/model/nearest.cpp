// SPDX-License-Identifier: Apache-2.0
#include "model/nearest.h"

#include <algorithm>
#include <numeric>

namespace gradcheck {
namespace {

// Candidates whose length alone rules them out are not compared, so a long word costs little.
template <typename Text>
std::string nearest_of(std::string_view word, std::span<const Text> candidates) {
  const std::size_t limit = std::max<std::size_t>(2, word.size() / 3);
  std::size_t best = std::min(limit, word.size() / 2) + 1;  // exclusive
  std::string found;
  for (std::string_view candidate : candidates) {
    const std::size_t longer = std::max(word.size(), candidate.size());
    const std::size_t shorter = std::min(word.size(), candidate.size());
    if (longer - shorter >= best) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= best) continue;
    best = distance;
    found = candidate;
  }
  return found;
}

std::string question(const std::string& word) {
  return word.empty() ? "" : "; did you mean '" + word + "'?";
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::string nearest(std::string_view word, std::span<const std::string_view> candidates) {
  return nearest_of(word, candidates);
}
std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  return nearest_of(word, candidates);
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  return question(nearest(word, candidates));
}
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  return question(nearest(word, candidates));
}

}  // namespace gradcheck
