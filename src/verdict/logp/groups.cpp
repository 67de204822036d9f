// SPDX-License-Identifier: Apache-2.0
#include "verdict/logp/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace gradcheck {
namespace {

void add_at(DeltaSums& sums, const LogProbShard& shard, std::size_t i) {
  const double delta = delta_at(shard, i);
  add_token(sums, shard.old_values[i], delta, delta == 0 ? 0 : std::expm1(delta));
}

std::size_t bin_of(double old_value) {
  const auto edge = std::lower_bound(kLogProbEdges.begin(), kLogProbEdges.end() - 1, old_value);
  return static_cast<std::size_t>(edge - kLogProbEdges.begin());
}

std::optional<std::size_t> first_counting(const LogProbShard& shard, std::size_t row) {
  for (std::size_t i = shard.offsets[row]; i < shard.offsets[row + 1]; ++i) {
    if (counts(shard, i)) return i;
  }
  return std::nullopt;
}

std::size_t longest_row(Shards shards) {
  std::size_t longest = 0;
  for_each_row(shards, [&](const LogProbShard& shard, std::size_t row) {
    const auto first = first_counting(shard, row);
    if (first) longest = std::max(longest, shard.offsets[row + 1] - *first);
  });
  return longest;
}

std::string bin_label(std::size_t bin) {
  if (bin == 0) return fmt::format("up to {}", kLogProbEdges[0]);
  return fmt::format("{} to {}", kLogProbEdges[bin - 1], kLogProbEdges[bin]);
}

std::string position_label(std::size_t range, std::size_t width) {
  if (width == 1) return fmt::format("{}", range);
  return fmt::format("{}-{}", range * width, (range + 1) * width - 1);
}

struct Candidate {
  double magnitude = 0;
  const LogProbShard* shard = nullptr;
  std::size_t row = 0, index = 0;
};

// Keeps the kLogProbWorst largest; an equal later one does not displace an earlier one.
void offer(std::vector<Candidate>& worst, const Candidate& candidate) {
  if (worst.size() == kLogProbWorst && candidate.magnitude <= worst.back().magnitude) return;
  const auto at = std::upper_bound(
      worst.begin(), worst.end(), candidate,
      [](const Candidate& a, const Candidate& b) { return a.magnitude > b.magnitude; });
  worst.insert(at, candidate);
  if (worst.size() > kLogProbWorst) worst.pop_back();
}

std::string flags_of(const LogProbShard& shard, std::size_t row, std::size_t index) {
  std::string flags;
  const auto say = [&](bool so, const char* word) {
    if (so) flags += (flags.empty() ? "" : ", ") + std::string(word);
  };
  std::size_t last = shard.offsets[row + 1];
  while (last > index + 1 && !counts(shard, last - 1)) --last;
  say(first_counting(shard, row) == index, "first");
  say(last == index + 1, "last");
  say(shard.old_values[index] == 0, "old exactly 0");
  say(shard.new_values[index] == 0, "new exactly 0");
  return flags;
}

LogProbToken token_of(const Candidate& from) {
  const LogProbShard& shard = *from.shard;
  LogProbToken token;
  token.rank = shard.rank;
  token.row = static_cast<std::int64_t>(from.row);
  token.position = static_cast<std::int64_t>(from.index - shard.offsets[from.row]);
  if (!shard.token_ids.empty()) token.token_id = shard.token_ids[from.index];
  token.old_value = shard.old_values[from.index];
  token.new_value = shard.new_values[from.index];
  token.delta = token.new_value - token.old_value;
  token.flags = flags_of(shard, from.row, from.index);
  return token;
}

LogProbRow row_of(const RowSums& from) {
  LogProbRow row;
  row.rank = from.shard->rank;
  row.row = static_cast<std::int64_t>(from.row);
  row.tokens = from.sums.tokens;
  row.mean = from.sums.mean();
  row.mean_abs = from.sums.mean_abs();
  row.max_abs = from.sums.largest;
  return row;
}

}  // namespace

std::vector<DeltaSums> sums_by_log_prob(Shards shards) {
  std::vector<DeltaSums> bins(kLogProbEdges.size());
  for_each_token(shards, [&](const LogProbShard& shard, std::size_t i) {
    add_at(bins[bin_of(shard.old_values[i])], shard, i);
  });
  return bins;
}

PositionSums sums_by_position(Shards shards) {
  PositionSums result;
  const std::size_t longest = longest_row(shards);
  result.width = std::max<std::size_t>(1, (longest + kLogProbPositions - 1) / kLogProbPositions);
  result.ranges.resize((longest + result.width - 1) / result.width);
  for_each_row(shards, [&](const LogProbShard& shard, std::size_t row) {
    const std::size_t first = first_counting(shard, row).value_or(0);
    for_each_compared(shard, row, [&](std::size_t i) {
      add_at(result.ranges[(i - first) / result.width], shard, i);
    });
  });
  return result;
}

std::vector<RankSums> sums_by_rank(const Sums& sums) {
  std::map<int, DeltaSums> ranks;
  for (const RowSums& row : sums.rows) add(ranks[row.shard->rank], row.sums);
  std::vector<RankSums> result;
  for (const auto& [rank, of_rank] : ranks) result.push_back({rank, of_rank});
  return result;
}

LogProbGroup group_of(std::string label, const DeltaSums& sums) {
  LogProbGroup group;
  group.label = std::move(label);
  group.tokens = sums.tokens;
  group.mean = sums.mean();
  group.mean_abs = sums.mean_abs();
  group.max_abs = sums.largest;
  group.mean_ratio = sums.mean_ratio();
  const auto n = static_cast<double>(sums.tokens);
  group.identical = n > 0 ? static_cast<double>(sums.identical) / n : 0;
  return group;
}

std::vector<LogProbGroup> rank_groups(const std::vector<RankSums>& ranks) {
  std::vector<LogProbGroup> groups;
  for (const RankSums& rank : ranks)
    groups.push_back(group_of(std::to_string(rank.rank), rank.sums));
  return groups;
}

std::vector<LogProbGroup> micro_batch_groups(const Sums& sums) {
  std::map<std::int64_t, DeltaSums> batches;
  for (const RowSums& row : sums.rows) {
    const auto& numbers = row.shard->micro_batches;
    if (!numbers.empty()) add(batches[numbers[row.row]], row.sums);
  }
  std::vector<LogProbGroup> groups;
  for (const auto& [number, of_batch] : batches) {
    groups.push_back(group_of(std::to_string(number), of_batch));
  }
  return groups;
}

std::vector<LogProbGroup> log_prob_groups(const std::vector<DeltaSums>& bins) {
  std::vector<LogProbGroup> groups;
  for (std::size_t i = 0; i < bins.size(); ++i) groups.push_back(group_of(bin_label(i), bins[i]));
  return groups;
}

std::vector<LogProbGroup> position_groups(const PositionSums& positions) {
  std::vector<LogProbGroup> groups;
  for (std::size_t i = 0; i < positions.ranges.size(); ++i) {
    groups.push_back(group_of(position_label(i, positions.width), positions.ranges[i]));
  }
  return groups;
}

std::vector<LogProbToken> worst_tokens(Shards shards) {
  std::vector<Candidate> worst;
  for_each_row(shards, [&](const LogProbShard& shard, std::size_t row) {
    for_each_compared(shard, row, [&](std::size_t i) {
      const double magnitude = std::fabs(delta_at(shard, i));
      if (magnitude > 0) offer(worst, {magnitude, &shard, row, i});
    });
  });
  std::vector<LogProbToken> tokens;
  for (const Candidate& candidate : worst) tokens.push_back(token_of(candidate));
  return tokens;
}

std::vector<LogProbRow> worst_rows(const Sums& sums) {
  std::vector<const RowSums*> order;
  for (const RowSums& row : sums.rows) {
    if (row.sums.absolute > 0) order.push_back(&row);
  }
  std::stable_sort(order.begin(), order.end(), [](const RowSums* a, const RowSums* b) {
    return a->sums.mean_abs() > b->sums.mean_abs();
  });
  if (order.size() > kLogProbWorst) order.resize(kLogProbWorst);
  std::vector<LogProbRow> rows;
  for (const RowSums* row : order) rows.push_back(row_of(*row));
  return rows;
}

}  // namespace gradcheck
