// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/evidence_table.h"
#include "model/payload_view.h"

namespace gradcheck {

// Elements [offset, offset + n) of a whole tensor, in row-major order.
struct ShardRange {
  std::uint64_t offset = 0;
  std::uint64_t n = 0;
};

// A row whose shards are no whole tensor, and why.
struct ShardProblem {
  RowKey row;
  std::string why;
};

// Evidence in which every row of shards has been put together: each rank that recorded one then
// holds the whole tensor, as an all-gather would give it to all of them (digests are of the shards'
// digests, sketches add up because shards are sketched at their global index). Its entries stay
// marked: is_shard(). Where shards overlap, leave elements out or are not of one tensor, nothing is
// whole: their entries are unreadable, so that nobody can pass by them. Rows with a rank missing
// stay as they are and incomplete.
struct PutTogether {
  EvidenceTable table;
  PayloadViews payloads;  // with the whole elements, where those of all shards were at hand
  std::map<RowKey, std::vector<ShardRange>> ranges;  // by rank; what each owned of the whole
  std::vector<ShardProblem> problems;
  std::deque<std::vector<std::byte>> storage;  // what the added views point into
};

// Nothing where no row holds a shard.
std::optional<PutTogether> put_together(const EvidenceTable& table, const PayloadViews& payloads);

}  // namespace gradcheck
