// SPDX-License-Identifier: Apache-2.0
#include "verdict/alignment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/phrases.h"
#include "verdict/plan.h"
#include "verdict/split_groups.h"

namespace gradcheck {
namespace {

// By model, step and rank.
using Counts = std::map<std::pair<std::string, std::int64_t>, std::map<int, std::int64_t>>;
using Shifts = std::map<std::tuple<std::string, std::int64_t, int>, std::int64_t>;

Counts count_micro_steps(const EvidenceTable& table) {
  Counts counts;
  for (int rank = 0; rank < table.world_size(); ++rank) {
    for (const EventRecord& event : table.rank(rank).events) {
      if (event.type != EventType::backward || event.model.empty()) continue;
      std::int64_t& count = counts[{event.model, event.step}][rank];
      count = std::max(count, event.micro + 1);
    }
  }
  return counts;
}

Shifts find_shifts(const EvidenceTable& table) {
  Shifts shifts;
  for (const auto& [where, ranks] : count_micro_steps(table)) {
    std::int64_t most = 0;
    for (const auto& [rank, count] : ranks) most = std::max(most, count);
    for (const auto& [rank, count] : ranks) {
      if (count < most) shifts[{where.first, where.second, rank}] = most - count;
    }
  }
  return shifts;
}

TensorRecord record_of(const EvidenceTable& table, const RowKey& key, const Entry& entry) {
  TensorRecord record;
  record.step = key.step;
  record.micro = key.micro;
  record.stage = key.stage;
  record.kind = key.kind;
  record.model = table.text(key.model);
  record.name = table.text(key.name);
  record.shape = table.shape(entry.shape);
  record.dtype = entry.dtype;
  record.state = entry.state;
  record.stats = {entry.digest, entry.n,        entry.nan,     entry.inf, entry.zeros,
                  entry.l1,     entry.l2,       entry.max_abs, entry.min, entry.max,
                  {},           entry.measured, false};
  if (is_shard(entry)) {
    record.layout = "shard";
    record.shard = {entry.offset, table.shape(static_cast<std::uint32_t>(entry.whole))};
  }
  if (const Sketch* sketch = table.sketch(entry)) {
    record.stats.sketch = *sketch;
    record.stats.has_sketch = true;
  }
  if (entry.requires_grad >= 0) record.requires_grad = entry.requires_grad == 1;
  if (entry.tied_to != 0) record.tied_to = table.text(entry.tied_to);
  return record;
}

bool counts_micro_steps(Stage stage) {
  return stage != Stage::start && stage != Stage::next_forward;
}

class Aligner {
 public:
  Aligner(const EvidenceTable& table, Shifts shifts, GroupNames names)
      : from_(table),
        shifts_(std::move(shifts)),
        names_(std::move(names)),
        to_(table.world_size()) {}

  EvidenceTable align() {
    for (int rank = 0; rank < from_.world_size(); ++rank) copy_rank(rank);
    for (const std::string& problem : from_.refused()) to_.refuse(problem);
    for (const RowKey& key : from_.rows()) {
      const auto entries = from_.entries(key);
      for (int rank = 0; rank < from_.world_size(); ++rank) {
        const Entry& entry = entries[static_cast<std::size_t>(rank)];
        if (entry.recorded) put(rank, record_of(from_, key, entry));
      }
    }
    add_what_did_not_run();
    say_what_was_shifted();
    to_.finish();
    return std::move(to_);
  }

 private:
  std::int64_t shift_of(int rank, const std::string& model, std::int64_t step) const {
    const auto found = shifts_.find({model, step, rank});
    return found == shifts_.end() ? 0 : found->second;
  }

  void rename(int rank, std::string& model) const {
    const auto found = names_.find({model, rank});
    if (found != names_.end()) model = found->second;
  }

  void copy_rank(int rank) {
    RankEvidence& copy = to_.rank(rank);
    copy = from_.rank(rank);
    for (EventRecord& event : copy.events) {
      event.micro += shift_of(rank, event.model, event.step);
      rename(rank, event.model);
    }
    for (MarkRecord& mark : copy.marks) {
      if (counts_micro_steps(mark.stage)) mark.micro += shift_of(rank, mark.model, mark.step);
      rename(rank, mark.model);
    }
    for (WrapperRecord& wrapper : copy.wrappers) rename(rank, wrapper.model);
  }

  void put(int rank, TensorRecord record) {
    if (counts_micro_steps(record.stage)) {
      record.micro += shift_of(rank, record.model, record.step);
    }
    rename(rank, record.model);
    to_.put(rank, record, ++sequence_);
  }

  // Rows of micro-steps that only other ranks ran.
  void add_what_did_not_run() {
    for (const auto& [where, shift] : shifts_) {
      const auto& [model, step, rank] = where;
      std::map<std::pair<std::int64_t, Stage>, std::uint64_t> added;
      for (const RowKey& key : to_.rows_of(step)) {
        const bool ours = to_.text(key.model) == new_name(rank, model) && key.micro < shift;
        if (!ours || (key.stage != Stage::local && key.stage != Stage::reduced)) continue;
        to_.put(rank, record_of(to_, key, Entry()), ++sequence_);
        ++added[{key.micro, key.stage}];
      }
      for (const auto& [stage, count] : added) {
        to_.rank(rank).marks.push_back(
            {step, stage.first, stage.second, new_name(rank, model), count});
      }
    }
  }

  std::string new_name(int rank, std::string model) const {
    rename(rank, model);
    return model;
  }

  // Once a model.
  void say_what_was_shifted() {
    std::map<std::string, std::int64_t> first;
    for (const auto& [where, shift] : shifts_) {
      first.try_emplace(new_name(std::get<2>(where), std::get<0>(where)), std::get<1>(where));
    }
    for (const auto& [model, step] : first) {
      say_everywhere(to_, fmt::format("ranks ran different numbers of micro-steps of {} (first in "
                                      "step {}): matched from the last one",
                                      model, step));
    }
  }

  const EvidenceTable& from_;
  Shifts shifts_;
  GroupNames names_;
  EvidenceTable to_;
  std::uint64_t sequence_ = 0;
};

}  // namespace

std::optional<EvidenceTable> aligned(const EvidenceTable& table) {
  if (!table.refused().empty() || table.world_size() < 2) return std::nullopt;
  Shifts shifts = find_shifts(table);
  GroupNames names = name_by_group(table);
  if (shifts.empty() && names.empty()) return std::nullopt;
  EvidenceTable result = Aligner(table, std::move(shifts), names).align();
  say_what_stands_apart(table, names, result);
  return result;
}

}  // namespace gradcheck
