// SPDX-License-Identifier: Apache-2.0
#include "model/evidence_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gradcheck {
namespace {

TensorRecord gradient(const std::string& name, std::uint64_t digest = 1) {
  TensorRecord record;
  record.stage = Stage::reduced;
  record.kind = TensorKind::grad;
  record.model = "policy";
  record.name = name;
  record.shape = {2, 3};
  record.state = TensorState::finite;
  record.stats.digest = {digest, digest};
  record.stats.n = 6;
  record.stats.measured = true;
  return record;
}

TensorRecord with_sketch(TensorRecord record, double value) {
  record.stats.has_sketch = true;
  record.stats.sketch.fill(value);
  return record;
}

MarkRecord mark_of(std::uint64_t tensors) { return {0, 0, Stage::reduced, "policy", tensors}; }

std::vector<std::string> names_in(const EvidenceTable& table) {
  std::vector<std::string> names;
  for (const RowKey& key : table.rows()) names.emplace_back(table.text(key.name));
  return names;
}

bool is_closed(EvidenceTable& table, int rank) {
  return table.stage_closed(rank, table.intern("policy"), 0, 0, Stage::reduced);
}

TEST(EvidenceTable, HoldsWhatEachRankSaid) {
  EvidenceTable table(2);
  table.put(0, gradient("w", 7), 1);
  table.put(1, gradient("w", 8), 1);
  table.finish();
  ASSERT_EQ(table.rows().size(), 1u);
  const auto entries = table.entries(table.rows()[0]);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].digest.high, 7u);
  EXPECT_EQ(entries[1].digest.high, 8u);
  EXPECT_EQ(entries[0].n, 6u);
  EXPECT_EQ(table.shape(entries[0].shape), (std::vector<std::int64_t>{2, 3}));
}

TEST(EvidenceTable, ARankThatSaidNothingIsUnrecordedNotZero) {
  EvidenceTable table(3);
  table.put(1, gradient("w"), 1);
  table.finish();
  const auto entries = table.entries(table.rows()[0]);
  EXPECT_FALSE(entries[0].recorded);
  EXPECT_TRUE(entries[1].recorded);
  EXPECT_FALSE(entries[2].recorded);
}

TEST(EvidenceTable, EvidenceGivenTwiceIsRefusedAndTheFirstStands) {
  EvidenceTable table(1);
  EXPECT_TRUE(table.put(0, gradient("w", 7), 1));
  EXPECT_FALSE(table.put(0, gradient("w", 8), 2));
  table.finish();
  EXPECT_EQ(table.entries(table.rows()[0])[0].digest.high, 7u);
}

TEST(EvidenceTable, AnotherMomentOrModelIsAnotherRow) {
  EvidenceTable table(1);
  TensorRecord record = gradient("w");
  EXPECT_TRUE(table.put(0, record, 1));
  record.micro = 1;
  EXPECT_TRUE(table.put(0, record, 2));
  record.step = 1;
  EXPECT_TRUE(table.put(0, record, 3));
  record.model = "critic";
  EXPECT_TRUE(table.put(0, record, 4));
  record.stage = Stage::final;
  EXPECT_TRUE(table.put(0, record, 5));
  table.finish();
  EXPECT_EQ(table.rows().size(), 5u);
}

TEST(EvidenceTable, RowsStandInTheLowestRanksOrderWhateverOrderLinesArriveIn) {
  struct Line {
    int rank;
    std::string name;
    std::uint64_t sequence;
  };
  std::vector<Line> lines = {{0, "b", 1}, {0, "a", 2}, {1, "a", 1}, {1, "b", 2}, {1, "only_1", 3}};
  const auto by_arrival = [](const Line& x, const Line& y) {
    return std::tie(x.rank, x.sequence) < std::tie(y.rank, y.sequence);
  };
  do {
    EvidenceTable table(2);
    for (const Line& line : lines) table.put(line.rank, gradient(line.name), line.sequence);
    table.finish();
    ASSERT_THAT(names_in(table), testing::ElementsAre("b", "a", "only_1"));
  } while (std::next_permutation(lines.begin(), lines.end(), by_arrival));
}

TEST(EvidenceTable, RowsStandByStepThenMicroThenStage) {
  EvidenceTable table(1);
  TensorRecord late = gradient("late");
  late.step = 1;
  TensorRecord start = gradient("start");
  start.stage = Stage::start;
  table.put(0, late, 1);
  table.put(0, gradient("middle"), 2);
  table.put(0, start, 3);
  table.finish();
  EXPECT_THAT(names_in(table), testing::ElementsAre("start", "middle", "late"));
}

TEST(EvidenceTable, RowsOfAStepStandInTheSameOrderBeforeTheTableIsFinished) {
  EvidenceTable table(2);
  for (const std::int64_t step : {2, 1, 0}) {
    for (const char* name : {"b", "a", "c"}) {
      TensorRecord record = gradient(name);
      record.step = step;
      table.put(1, record, 7);
      table.put(0, record, name[0] == 'a' ? 3 : 5);
    }
  }
  const std::vector<RowKey> rows = table.rows_of(1);
  EXPECT_TRUE(table.rows_of(3).empty());
  table.finish();
  std::vector<RowKey> same;
  for (const RowKey& key : table.rows()) {
    if (key.step == 1) same.push_back(key);
  }
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows, same);
  EXPECT_EQ(table.text(rows.front().name), "a");
}

TEST(EvidenceTable, KeepsASketchOnlyWhereThereIsOne) {
  EvidenceTable table(2);
  table.put(0, with_sketch(gradient("w"), 2.5), 1);
  table.put(1, gradient("w"), 1);
  table.finish();
  const auto entries = table.entries(table.rows()[0]);
  ASSERT_NE(table.sketch(entries[0]), nullptr);
  EXPECT_EQ((*table.sketch(entries[0]))[31], 2.5);
  EXPECT_EQ(table.sketch(entries[1]), nullptr);
}

TEST(EvidenceTable, TiedAndRequiresGradAreTypedAbsences) {
  EvidenceTable table(1);
  TensorRecord tied = gradient("head");
  tied.tied_to = "embed";
  tied.requires_grad = false;
  table.put(0, tied, 1);
  table.put(0, gradient("free"), 2);
  table.finish();
  const Entry& head = table.entries(table.rows()[0])[0];
  const Entry& free = table.entries(table.rows()[1])[0];
  EXPECT_EQ(table.text(head.tied_to), "embed");
  EXPECT_EQ(head.requires_grad, 0);
  EXPECT_EQ(free.tied_to, 0u);
  EXPECT_EQ(free.requires_grad, -1);
}

TEST(EvidenceTable, AStageIsClosedOnlyByAMarkWithTheRightCount) {
  EvidenceTable table(2);
  table.put(0, gradient("a"), 1);
  table.put(0, gradient("b"), 2);
  EXPECT_FALSE(is_closed(table, 0)) << "no mark";
  table.rank(0).marks.push_back(mark_of(3));
  EXPECT_FALSE(is_closed(table, 0)) << "a line was lost";
  table.rank(0).marks.push_back(mark_of(2));
  EXPECT_TRUE(is_closed(table, 0));
  EXPECT_FALSE(is_closed(table, 1)) << "another rank's mark";
}

TEST(EvidenceTable, ALineGivenTwiceDoesNotStandInForALostOne) {
  EvidenceTable table(1);
  table.put(0, gradient("a"), 1);
  table.put(0, gradient("a"), 2);
  table.rank(0).marks.push_back(mark_of(2));
  EXPECT_FALSE(is_closed(table, 0));
}

TEST(EvidenceTable, AnEmptyStageNeedsAMarkThatSaysSo) {
  EvidenceTable table(1);
  EXPECT_FALSE(is_closed(table, 0));
  table.rank(0).marks.push_back(mark_of(0));
  EXPECT_TRUE(is_closed(table, 0));
}

TEST(EvidenceTable, InternsTextOnceAndNeverAsZero) {
  EvidenceTable table(1);
  const NameId id = table.intern("policy");
  EXPECT_NE(id, 0u);
  EXPECT_EQ(table.intern("policy"), id);
  EXPECT_EQ(table.find_text("policy"), id);
  EXPECT_EQ(table.find_text("critic"), std::nullopt);
  EXPECT_EQ(table.text(id), "policy");
}

TEST(EvidenceTable, AnUnknownRowHasNoEntries) {
  EvidenceTable table(2);
  table.finish();
  EXPECT_TRUE(table.entries(RowKey{}).empty());
  EXPECT_FALSE(table.has(RowKey{}));
}

}  // namespace
}  // namespace gradcheck
