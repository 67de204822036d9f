// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <span>

#include "model/log_probs.h"

namespace gradcheck {

using Shards = std::span<const LogProbShard* const>;

inline std::size_t row_count(const LogProbShard& shard) {
  return shard.offsets.empty() ? 0 : shard.offsets.size() - 1;
}

inline bool counts(const LogProbShard& shard, std::size_t index) {
  return shard.mask.empty() || shard.mask[index] != 0;
}

// Inside the mask and finite on both sides: the tokens that every number is about.
inline bool is_compared(const LogProbShard& shard, std::size_t index) {
  return counts(shard, index) && std::isfinite(shard.old_values[index]) &&
         std::isfinite(shard.new_values[index]);
}

inline double delta_at(const LogProbShard& shard, std::size_t index) {
  return shard.new_values[index] - shard.old_values[index];
}

// Calls `visit(index)` for the compared tokens of one row, first to last.
template <class Visit>
void for_each_compared(const LogProbShard& shard, std::size_t row, Visit&& visit) {
  for (std::size_t i = shard.offsets[row]; i < shard.offsets[row + 1]; ++i) {
    if (is_compared(shard, i)) visit(i);
  }
}

// Calls `visit(shard, row)` for every row of every shard, in order.
template <class Visit>
void for_each_row(Shards shards, Visit&& visit) {
  for (const LogProbShard* shard : shards) {
    for (std::size_t row = 0; row < row_count(*shard); ++row) visit(*shard, row);
  }
}

// Calls `visit(shard, index)` for every compared token.
template <class Visit>
void for_each_token(Shards shards, Visit&& visit) {
  for_each_row(shards, [&](const LogProbShard& shard, std::size_t row) {
    for_each_compared(shard, row, [&](std::size_t index) { visit(shard, index); });
  });
}

}  // namespace gradcheck
