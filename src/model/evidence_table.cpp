// SPDX-License-Identifier: Apache-2.0
#include "model/evidence_table.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "model/names.h"

namespace gradcheck {
namespace {

constexpr std::array<std::string_view, 5> kRankEnds = {"running", "bye", "exited", "signalled",
                                                       "deadline"};

Entry entry_from(const TensorRecord& record) {
  const TensorStats& stats = record.stats;
  Entry entry;
  entry.digest = stats.digest;
  entry.n = stats.n;
  entry.nan = stats.nan;
  entry.inf = stats.inf;
  entry.zeros = stats.zeros;
  entry.l1 = stats.l1;
  entry.l2 = stats.l2;
  entry.max_abs = stats.max_abs;
  entry.min = stats.min;
  entry.max = stats.max;
  entry.dtype = record.dtype;
  entry.state = record.state;
  entry.recorded = true;
  entry.measured = stats.measured;
  if (record.requires_grad) entry.requires_grad = *record.requires_grad ? 1 : 0;
  return entry;
}

}  // namespace

std::string_view name_of(RankEnd end) { return name_at(kRankEnds, end); }

EvidenceTable::EvidenceTable(int world_size)
    : world_size_(world_size), texts_(1), ranks_(static_cast<std::size_t>(world_size)) {}

NameId EvidenceTable::intern(std::string_view text) {
  const auto found = text_ids_.find(text);
  if (found != text_ids_.end()) return found->second;
  const auto id = static_cast<NameId>(texts_.size());
  texts_.emplace_back(text);
  text_ids_.emplace(std::string(text), id);
  return id;
}

std::optional<NameId> EvidenceTable::find_text(std::string_view text) const {
  const auto found = text_ids_.find(text);
  if (found == text_ids_.end()) return std::nullopt;
  return found->second;
}

EvidenceTable::Row& EvidenceTable::row_for(const RowKey& key, int rank, std::uint64_t sequence) {
  const auto [position, is_new] = index_.try_emplace(key);
  Row& row = position->second;
  if (is_new) {
    row = {std::vector<Entry>(static_cast<std::size_t>(world_size_)), rank, sequence};
  } else if (std::pair(rank, sequence) < std::pair(row.order_rank, row.order_sequence)) {
    row.order_rank = rank;
    row.order_sequence = sequence;
  }
  return row;
}

std::uint32_t EvidenceTable::shape_id(const std::vector<std::int64_t>& shape) {
  const auto next = static_cast<std::uint32_t>(shapes_.size());
  const auto [found, is_new] = shape_ids_.try_emplace(shape, next);
  if (is_new) shapes_.push_back(shape);
  return found->second;
}

void EvidenceTable::replace(const RowKey& key, int rank, const Entry& entry, const Sketch* sketch) {
  Entry& slot = index_.at(key).entries[static_cast<std::size_t>(rank)];
  slot = entry;
  slot.sketch = -1;
  if (sketch == nullptr) return;
  slot.sketch = static_cast<std::int32_t>(sketches_.size());
  sketches_.push_back(*sketch);
}

bool EvidenceTable::put(int rank, const TensorRecord& record, std::uint64_t sequence) {
  const RowKey key{record.step, record.micro,         record.stage,
                   record.kind, intern(record.model), intern(record.name)};
  Entry& slot = row_for(key, rank, sequence).entries[static_cast<std::size_t>(rank)];
  if (slot.recorded) return false;
  slot = entry_from(record);
  slot.shape = shape_id(record.shape);
  if (record.shard) {
    slot.offset = record.shard->offset;
    slot.whole = static_cast<std::int32_t>(shape_id(record.shard->global_shape));
  }
  if (!record.tied_to.empty()) slot.tied_to = intern(record.tied_to);
  if (record.stats.has_sketch) {
    slot.sketch = static_cast<std::int32_t>(sketches_.size());
    sketches_.push_back(record.stats.sketch);
  }
  ++received_[{record.step, record.micro, record.stage, key.model, rank}];
  return true;
}

void EvidenceTable::finish() {
  order_.clear();
  for (const auto& [key, row] : index_) order_.push_back(key);
  sort(order_);
}

std::vector<RowKey> EvidenceTable::rows_of(std::int64_t step) const {
  std::vector<RowKey> keys;
  for (auto row = index_.lower_bound(RowKey{step}); row != index_.end(); ++row) {
    if (row->first.step != step) break;
    keys.push_back(row->first);
  }
  sort(keys);
  return keys;
}

void EvidenceTable::sort(std::vector<RowKey>& keys) const {
  std::stable_sort(keys.begin(), keys.end(), [this](const RowKey& a, const RowKey& b) {
    const Row& row_a = index_.at(a);
    const Row& row_b = index_.at(b);
    return std::tie(a.step, a.micro, a.stage, row_a.order_rank, row_a.order_sequence) <
           std::tie(b.step, b.micro, b.stage, row_b.order_rank, row_b.order_sequence);
  });
}

std::span<const Entry> EvidenceTable::entries(const RowKey& key) const {
  const auto found = index_.find(key);
  if (found == index_.end()) return {};
  return found->second.entries;
}

const Sketch* EvidenceTable::sketch(const Entry& entry) const {
  return entry.sketch < 0 ? nullptr : &sketches_[static_cast<std::size_t>(entry.sketch)];
}

bool EvidenceTable::stage_closed(int rank, NameId model, std::int64_t step, std::int64_t micro,
                                 Stage stage) const {
  const auto received = received_.find({step, micro, stage, model, rank});
  const std::uint64_t lines = received == received_.end() ? 0 : received->second;
  const auto& marks = ranks_[static_cast<std::size_t>(rank)].marks;
  return std::any_of(marks.begin(), marks.end(), [&](const MarkRecord& mark) {
    return mark.step == step && mark.micro == micro && mark.stage == stage &&
           mark.model == text(model) && mark.tensors == lines;
  });
}

}  // namespace gradcheck
