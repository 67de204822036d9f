// SPDX-License-Identifier: Apache-2.0
#include "verdict/logp/padding.h"

#include "verdict/logp/tokens.h"

namespace gradcheck {
namespace {

constexpr std::size_t kShortestRun = 4;  // fewer may be certain tokens

bool is_blank(const LogProbShard& shard, std::size_t i) {
  return shard.old_values[i] == 0 && shard.new_values[i] == 0;
}

struct Run {
  std::size_t front = 0, back = 0;  // blank tokens at the ends of a row
  std::size_t padding() const {
    return (front >= kShortestRun ? front : 0) + (back >= kShortestRun ? back : 0);
  }
};

Run run_of(const LogProbShard& shard, std::size_t row) {
  std::size_t begin = shard.offsets[row], end = shard.offsets[row + 1];
  Run run;
  while (begin < end && is_blank(shard, begin)) ++begin, ++run.front;
  while (end > begin && is_blank(shard, end - 1)) --end, ++run.back;
  return run;
}

std::size_t padding_in(const LogProbShard& shard) {
  std::size_t padding = 0;
  for (std::size_t row = 0; row < row_count(shard); ++row) padding += run_of(shard, row).padding();
  return padding;
}

void mask_row(LogProbShard& shard, std::size_t row) {
  const Run run = run_of(shard, row);
  const std::size_t begin = shard.offsets[row], end = shard.offsets[row + 1];
  const std::size_t front = run.front >= kShortestRun ? run.front : 0;
  const std::size_t back = run.back >= kShortestRun ? run.back : 0;
  for (std::size_t i = begin; i < begin + front; ++i) shard.mask[i] = 0;
  for (std::size_t i = end - back; i < end; ++i) shard.mask[i] = 0;
}

}  // namespace

std::int64_t mask_padding(std::vector<const LogProbShard*>& judged,
                          std::vector<LogProbShard>& masked) {
  masked.reserve(judged.size());  // what points into it must stay
  std::size_t padding = 0;
  for (const LogProbShard*& shard : judged) {
    const std::size_t found = shard->mask.empty() ? padding_in(*shard) : 0;
    if (found == 0) continue;
    padding += found;
    masked.push_back(*shard);
    masked.back().mask.assign(shard->old_values.size(), 1);
    for (std::size_t row = 0; row < row_count(*shard); ++row) mask_row(masked.back(), row);
    shard = &masked.back();
  }
  return static_cast<std::int64_t>(padding);
}

}  // namespace gradcheck
