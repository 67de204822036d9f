// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/record.h"

namespace gradcheck {

using NameId = std::uint32_t;

// One tensor at one moment. Model and name are interned; see EvidenceTable::text().
struct RowKey {
  std::int64_t step = 0;
  std::int64_t micro = 0;
  Stage stage = Stage::start;
  TensorKind kind = TensorKind::param;
  NameId model = 0;
  NameId name = 0;
  friend auto operator<=>(const RowKey&, const RowKey&) = default;
};

// What one rank said about one tensor at one moment. `recorded` is false where it said nothing.
struct Entry {
  Digest digest;
  std::uint64_t n = 0, nan = 0, inf = 0, zeros = 0;
  double l1 = 0, l2 = 0, max_abs = 0, min = 0, max = 0;
  std::uint64_t offset = 0;   // of a shard: its first element in the whole tensor
  std::uint32_t shape = 0;    // EvidenceTable::shape()
  std::int32_t sketch = -1;   // index into the side array; −1: none
  std::int32_t whole = -1;    // of a shard: shape() of the whole tensor; −1: not a shard
  std::uint32_t tied_to = 0;  // NameId of the storage's owner; 0: not tied
  DType dtype = DType::other;
  TensorState state = TensorState::absent;
  bool recorded = false;
  bool measured = false;           // statistics are meaningful, not the digest alone
  std::int8_t requires_grad = -1;  // −1 unknown, 0, 1
};

inline bool is_shard(const Entry& entry) { return entry.whole >= 0; }

static_assert(sizeof(Entry) + sizeof(Sketch) <= 384,
              "1,024 ranks × 1,000 tensors × 2 stages must fit in 1 GiB");

enum class RankEnd : std::uint8_t {
  running,  // nothing is known yet
  bye,      // said so itself, evidence complete
  exited,   // exit status without `bye`
  signalled,
  deadline,  // ended by the front
};

std::string_view name_of(RankEnd end);  // as in the report: "bye", "signalled", …

// Names of deadlines that say nothing against the rank that met them: it waited for another.
inline constexpr std::string_view kWaitedForOthers = "waiting for other ranks";
inline constexpr std::string_view kAfterRank = "after rank";  // … 1 ended
// Of a rank whose work was done and that never left: its destructors may wait for ever.
inline constexpr std::string_view kHungAtExit = "hung at exit";

// Everything about a rank that is not a tensor.
struct RankEvidence {
  std::optional<HelloRecord> hello;
  std::optional<ByeRecord> bye;
  std::vector<GroupRecord> groups;
  std::vector<WrapperRecord> wrappers;
  std::vector<MarkRecord> marks;
  std::vector<EventRecord> events;  // in the order sent
  std::vector<PayloadRecord> payloads;
  std::vector<LogProbRecord> log_probs;  // in the order sent
  RankEnd end = RankEnd::running;
  int exit_status = 0;         // of `exited`
  int signal = 0;              // of `signalled`
  std::int64_t end_order = 0;  // 1: the first of its world to end; 0: not known
  std::string deadline;        // of `deadline`: which one, "step (30 s)"
  std::string phase;           // last phase entered
  std::string last_record;     // "tensor reduced step 0 model.norm.weight", for people
  std::string last_stderr;     // last lines the rank wrote to stderr
  std::uint64_t lines = 0;     // accepted
};

// All evidence of one world of ranks, judged as a whole. Built by evidence/read (or by a test);
// afterwards read-only. Rows keep the order in which the lowest rank recorded them, so equal
// evidence gives equal output whatever order lines arrived in.
// Size: about 120 bytes an entry and 256 a sketch.
class EvidenceTable {
 public:
  explicit EvidenceTable(int world_size);

  int world_size() const { return world_size_; }

  // --- building
  NameId intern(std::string_view text);  // never 0
  // False if this rank has recorded this tensor at this moment already (evidence given twice).
  // `sequence` is the line number, which orders rows.
  bool put(int rank, const TensorRecord& record, std::uint64_t sequence);
  // Puts another entry in the place of a rank's, and its sketch beside it; null: it has none.
  // Requires: the rank has recorded the row.
  void replace(const RowKey& key, int rank, const Entry& entry, const Sketch* sketch);
  RankEvidence& rank(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  void refuse(std::string problem) { refused_.push_back(std::move(problem)); }
  void finish();  // sorts all rows for rows(); call once after the last put

  // --- reading
  std::string_view text(NameId id) const { return texts_[id]; }
  std::optional<NameId> find_text(std::string_view text) const;
  const std::vector<std::int64_t>& shape(std::uint32_t id) const { return shapes_[id]; }
  // Keys in output order: step, micro, stage, then the order of recording.
  const std::vector<RowKey>& rows() const { return order_; }
  // Those of one step, in the same order, also while the table is being built.
  std::vector<RowKey> rows_of(std::int64_t step) const;
  bool has(const RowKey& key) const { return index_.contains(key); }
  // One entry a rank; empty if no rank recorded it.
  std::span<const Entry> entries(const RowKey& key) const;
  const Sketch* sketch(const Entry& entry) const;
  const RankEvidence& rank(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  // Why some evidence was refused (twice the same rank, another run, broken line). Not empty means
  // the arm is an error.
  const std::vector<std::string>& refused() const { return refused_; }
  // True if the rank closed the stage and as many tensor records arrived as its mark says.
  bool stage_closed(int rank, NameId model, std::int64_t step, std::int64_t micro,
                    Stage stage) const;

 private:
  struct Row {
    std::vector<Entry> entries;  // one a rank
    int order_rank = 0;
    std::uint64_t order_sequence = 0;
  };
  struct StageKey {
    std::int64_t step, micro;
    Stage stage;
    NameId model;
    int rank;
    friend auto operator<=>(const StageKey&, const StageKey&) = default;
  };
  void sort(std::vector<RowKey>& keys) const;  // into output order
  std::uint32_t shape_id(const std::vector<std::int64_t>& shape);
  Row& row_for(const RowKey& key, int rank, std::uint64_t sequence);

  int world_size_;
  std::vector<std::string> texts_;
  std::map<std::string, NameId, std::less<>> text_ids_;
  std::vector<std::vector<std::int64_t>> shapes_;
  std::map<std::vector<std::int64_t>, std::uint32_t> shape_ids_;
  std::map<RowKey, Row> index_;
  std::vector<RowKey> order_;
  std::deque<Sketch> sketches_;  // never moved: at a gigabyte, growing by copying would not fit
  std::map<StageKey, std::uint64_t> received_;
  std::vector<RankEvidence> ranks_;
  std::vector<std::string> refused_;
};

}  // namespace gradcheck
