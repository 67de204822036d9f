// SPDX-License-Identifier: Apache-2.0
#include "evidence/read/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evidence/write/lines.h"

namespace gradcheck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

HelloRecord hello(int rank, const std::string& run = "run") {
  HelloRecord record;
  record.run = run;
  record.world = "world";
  record.rank = rank;
  record.world_size = 2;
  return record;
}

TensorRecord tensor(const std::string& name) {
  TensorRecord record;
  record.stage = Stage::reduced;
  record.kind = TensorKind::grad;
  record.model = "policy";
  record.name = name;
  record.state = TensorState::finite;
  record.stats.n = 1;  // a scalar: the shape is empty
  return record;
}

TEST(Reader, TakesAHealthyStream) {
  EvidenceReader reader("run", 2);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(reader.accept(rank, to_line(hello(rank), 0)).kind, LineKind::hello);
    reader.accept(rank, to_line(tensor("w"), 1));
    EXPECT_EQ(reader.accept(rank, to_line(ByeRecord{0, 2}, 2)).kind, LineKind::bye);
  }
  EXPECT_THAT(reader.table().refused(), IsEmpty());
  EXPECT_TRUE(reader.table().rank(1).bye.has_value());
}

TEST(Reader, EvidenceOfAnotherRunIsRefused) {
  EvidenceReader reader("run", 2);
  EXPECT_EQ(reader.accept(0, to_line(hello(0, "other"), 0)).kind, LineKind::refused);
  EXPECT_THAT(reader.table().refused(), ElementsAre(HasSubstr("another run, other")));
}

TEST(Reader, ARankThatSpeaksForAnotherIsRefused) {
  EvidenceReader reader("run", 2);
  reader.accept(0, to_line(hello(1), 0));
  EXPECT_THAT(reader.table().refused(), ElementsAre(HasSubstr("calls itself rank 1")));
}

TEST(Reader, OneRanksEvidenceGivenTwiceIsRefused) {
  EvidenceReader reader("run", 2);
  reader.accept(0, to_line(hello(0), 0));
  reader.accept(0, to_line(tensor("w"), 1));
  reader.accept(0, to_line(tensor("w"), 2));
  EXPECT_THAT(reader.table().refused(), ElementsAre(HasSubstr("given twice")));
}

TEST(Reader, ASecondHelloIsRefused) {
  EvidenceReader reader("run", 2);
  reader.accept(0, to_line(hello(0), 0));
  reader.accept(0, to_line(hello(0), 1));
  EXPECT_THAT(reader.table().refused(), ElementsAre(HasSubstr("hello twice")));
}

TEST(Reader, ReplayedLinesAreSeenByTheirNumber) {
  EvidenceReader reader("run", 2);
  const std::string line = to_line(hello(0), 0);
  reader.accept(0, line);
  reader.accept(0, line);
  EXPECT_THAT(reader.table().refused(), ElementsAre(HasSubstr("missing or doubled")));
}

TEST(Reader, ALostLineIsSeen) {
  EvidenceReader reader("run", 2);
  reader.accept(0, to_line(hello(0), 0));
  reader.accept(0, to_line(tensor("w"), 2));
  EXPECT_THAT(reader.table().refused(), ElementsAre(HasSubstr("numbered 2")));
}

TEST(Reader, EvidenceBeforeHelloIsRefused) {
  EvidenceReader reader("run", 2);
  reader.accept(0, to_line(tensor("w"), 0));
  EXPECT_THAT(reader.table().refused(), ElementsAre(HasSubstr("before hello")));
}

TEST(Reader, AnotherWorldIsRefused) {
  EvidenceReader reader("run", 2);
  reader.accept(0, to_line(hello(0), 0));
  HelloRecord stranger = hello(1);
  stranger.world = "elsewhere";
  reader.accept(1, to_line(stranger, 0));
  EXPECT_THAT(reader.table().refused(), ElementsAre(HasSubstr("another world")));
}

TEST(Reader, AnotherWorldSizeOrSchemaIsRefused) {
  EvidenceReader reader("run", 2);
  HelloRecord wrong = hello(0);
  wrong.world_size = 3;
  reader.accept(0, to_line(wrong, 0));
  wrong = hello(1);
  wrong.schema = "evidence-2";
  reader.accept(1, to_line(wrong, 0));
  EXPECT_EQ(reader.table().refused().size(), 2U);
}

TEST(Reader, NonsenseFillsOneReportNotTheMemory) {
  EvidenceReader reader("run", 2);
  for (int i = 0; i < 1000; ++i) reader.accept(0, "{\"seq\": nonsense");
  EXPECT_EQ(reader.table().refused().size(), 10U);
}

TEST(Reader, BrokenValuesNameTheirField) {
  EvidenceReader reader("run", 2);
  reader.accept(0, to_line(hello(0), 0));
  reader.accept(0, R"({"type":"mark","seq":1,"step":-1,"stage":"start","model":"m","tensors":1})");
  reader.accept(0, R"({"type":"mark","seq":1,"stage":"begin","model":"m","tensors":1})");
  reader.accept(0, R"({"type":"mark","seq":1,"stage":"start","model":7,"tensors":1})");
  EXPECT_THAT(reader.table().refused(),
              ElementsAre(HasSubstr("negative"), HasSubstr("'begin'"), HasSubstr("model")));
}

TEST(Reader, UnknownTypesAndKeysAreIgnored) {
  EvidenceReader reader("run", 2);
  reader.accept(0, to_line(hello(0), 0));
  reader.accept(0, R"({"type":"hologram","seq":1})");
  reader.accept(0, R"({"type":"event","event":"teleport","seq":2})");
  EXPECT_THAT(reader.table().refused(), IsEmpty());
}

TEST(Reader, AGroupWithStrangersOrTwinsIsRefused) {
  EvidenceReader reader("run", 2);
  reader.accept(0, to_line(hello(0), 0));
  reader.accept(0, to_line(GroupRecord{"a", {0, 7}}, 1));
  reader.accept(0, to_line(GroupRecord{"b", {0, 0, 1}}, 2));
  reader.accept(0, to_line(GroupRecord{"c", {}}, 3));
  EXPECT_EQ(reader.table().refused().size(), 3U);
  EXPECT_THAT(reader.table().rank(0).groups, IsEmpty());
}

TEST(Reader, RecordsThatContradictThemselvesAreRefused) {
  TensorRecord fine = tensor("fine");
  fine.stats.measured = true;
  fine.stats.l2 = fine.stats.l1 = fine.stats.max_abs = fine.stats.max = 1;
  TensorRecord nan_in_finite = fine;
  nan_in_finite.name = "nan";
  nan_in_finite.stats.nan = 1;
  TensorRecord zero_with_values = fine;
  zero_with_values.name = "zero";
  zero_with_values.state = TensorState::zero;
  TensorRecord other_count = fine;
  other_count.name = "count";
  other_count.stats.n = 2;
  TensorRecord negative = fine;
  negative.name = "shape";
  negative.shape = {-1};
  EvidenceReader reader("run", 2);
  reader.accept(0, to_line(hello(0), 0));
  std::uint64_t sequence = 1;
  for (const auto& record : {fine, nan_in_finite, zero_with_values, other_count, negative}) {
    reader.accept(0, to_line(record, sequence++));
  }
  EXPECT_EQ(reader.table().refused().size(), 4U);
}

TEST(Reader, LogProbsAreKeptInOrderAndBrokenOnesNameTheirField) {
  EvidenceReader reader("run", 2);
  reader.accept(0, to_line(hello(0), 0));
  reader.accept(0, R"({"type":"logprob","seq":1,"name":"a","file":"x","updates":null})");
  reader.accept(0, R"({"type":"logprob","seq":2,"step":1,"name":"b","file":"","updates":3})");
  const auto& kept = reader.table().rank(0).log_probs;
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].updates, std::nullopt);
  EXPECT_EQ(kept[1].updates, std::optional<std::int64_t>(3));
  EXPECT_EQ(reader.table().rank(0).last_record, "log-probs b step 1");
  EXPECT_THAT(reader.table().refused(), IsEmpty());
  reader.accept(0, R"({"type":"logprob","seq":3,"name":"a"})");
  reader.accept(0, R"({"type":"logprob","seq":3,"name":"a","file":"x","updates":-1})");
  reader.accept(0, R"({"type":"logprob","seq":3,"name":"a","file":"x","updates":0.5})");
  reader.accept(0, R"({"type":"logprob","seq":3,"name":"a","file":"x","keys":[1]})");
  reader.accept(0, R"({"type":"logprob","seq":3,"step":-1,"name":"a","file":"x"})");
  EXPECT_THAT(reader.table().refused(),
              ElementsAre(HasSubstr("file is missing"), HasSubstr("updates is negative"),
                          HasSubstr("updates is of a wrong type"), HasSubstr("keys"),
                          HasSubstr("step or micro is negative")));
}

TEST(Reader, NothingCountsAfterBye) {
  EvidenceReader reader("run", 2);
  reader.accept(0, to_line(hello(0), 0));
  reader.accept(0, to_line(ByeRecord{0, 1}, 1));
  reader.accept(0, to_line(tensor("w"), 2));
  EXPECT_THAT(reader.table().refused(), ElementsAre(HasSubstr("after bye")));
}

TEST(Reader, AnUnknownReductionIsRefusedNotIgnored) {
  EvidenceReader reader("run", 2);
  reader.accept(0, to_line(hello(0), 0));
  WrapperRecord wrapper;
  wrapper.reduce = "median";
  reader.accept(0, to_line(wrapper, 1));
  EXPECT_THAT(reader.table().refused(), ElementsAre(HasSubstr("'median'")));
}

TEST(Reader, AnEmptyListOfNamesIsNotAllNames) {
  EvidenceReader reader("run", 2);
  reader.accept(0, to_line(hello(0), 0));
  reader.accept(0, R"({"type":"event","event":"optimizer_step","seq":1,"names":[]})");
  EXPECT_THAT(reader.table().refused(), ElementsAre(HasSubstr("names")));
}

TEST(Reader, ALineLongerThanTheLimitIsRefused) {
  EvidenceReader reader("run", 2);
  reader.accept(0, std::string(kMaxLineBytes + 1, ' '));
  EXPECT_THAT(reader.table().refused(), ElementsAre(HasSubstr("64 KiB")));
}

TEST(Reader, ByeThatCountsOtherLinesIsRefused) {
  EvidenceReader reader("run", 2);
  reader.accept(0, to_line(hello(0), 0));
  reader.accept(0, to_line(ByeRecord{0, 5}, 1));
  EXPECT_THAT(reader.table().refused(), ElementsAre(HasSubstr("bye")));
}

TEST(Reader, KnowsPhaseAndLastRecordOfASilentRank) {
  EvidenceReader reader("run", 2);
  reader.accept(0, to_line(hello(0), 0));
  EventRecord phase;
  phase.type = EventType::phase;
  phase.phase = "backward";
  EXPECT_EQ(reader.accept(0, to_line(phase, 1)).kind, LineKind::phase);
  reader.accept(0, to_line(tensor("w"), 2));
  EXPECT_EQ(reader.table().rank(0).phase, "backward");
  EXPECT_EQ(reader.table().rank(0).last_record, "tensor reduced step 0 micro 0 w");
}

}  // namespace
}  // namespace gradcheck
