// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradcheck {

// Levenshtein distance in bytes: insertions, deletions and substitutions.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate that `word` was most likely meant to be: the first of the smallest distance, which
// must be at most max(2, a third of the word) and at most half of it. Otherwise empty.
std::string nearest(std::string_view word, std::span<const std::string_view> candidates);
std::string nearest(std::string_view word, std::span<const std::string> candidates);

// "; did you mean 'kto_liger_ddp'?" to end an error message with, or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace gradcheck
