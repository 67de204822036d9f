// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <limits>

#include "numeric/kernel.h"
#include "support.h"

namespace gradcheck::capture {
namespace {

TensorStats stats_of(const Tensor<float>& tensor, KernelMode mode = KernelMode::full) {
  return measure(tensor.dtype, std::as_bytes(std::span(tensor.elements)), mode);
}

TEST_F(CaptureTest, EveryKindOfRecordIsReadByTheFront) {
  const char* const lines[] = {
      kHello,
      R"({"type":"group","name":"world","ranks":[0]})",
      R"({"type":"wrapper","model":"Net","kind":"ddp","group":"world","divide":0})",
      R"({"type":"event","event":"clip","step":0,"micro":0,"norm":null,"max_norm":1.5})",
      R"({"type":"payload","step":0,"micro":0,"stage":"reduced","file":"","names":[]})",
      R"( { "type" : "note from the future", "text": "ж𝄞 \ud834\udd1e" } )",
  };
  for (const char* line : lines) EXPECT_EQ(gradcheck_send(handle(), line), 0) << error();
  const std::int32_t weight = slot("weight");
  const Tensor<float> values = wave(100);
  EXPECT_EQ(record(weight, 0, Stage::reduced, values), 0) << error();
  EXPECT_EQ(mark(0, Stage::reduced), 0);
  EXPECT_EQ(gradcheck_bye(handle(), 3), 0);

  const EvidenceTable table = read_file();
  const RankEvidence& rank = table.rank(0);
  ASSERT_TRUE(rank.bye.has_value());
  EXPECT_EQ(rank.bye->status, 3);
  EXPECT_EQ(rank.bye->lines, std::size(lines) + 2);
  EXPECT_EQ(rank.lines, std::size(lines) + 3);
  EXPECT_EQ(rank.events.at(0).max_norm, 1.5);
  EXPECT_EQ(rank.payloads.size() + rank.wrappers.size() + rank.groups.size(), 3U);
  EXPECT_TRUE(is_closed(table, 0, Stage::reduced));
}

TEST_F(CaptureTest, ReducedIsMeasuredInFull) {
  gradcheck_send(handle(), kHello);
  const Tensor<float> values = wave(1000);
  record(slot("weight"), 0, Stage::reduced, values);
  const EvidenceTable table = read_back();
  const Entry found = entry(table, 0, Stage::reduced, "weight");
  const TensorStats right = stats_of(values);
  EXPECT_EQ(found.digest, right.digest);
  EXPECT_EQ(found.n, 1000U);
  EXPECT_EQ(found.l2, right.l2);
  EXPECT_EQ(found.max_abs, right.max_abs);
  EXPECT_EQ(found.state, TensorState::finite);
  ASSERT_NE(table.sketch(found), nullptr);
  EXPECT_EQ(*table.sketch(found), right.sketch);
  EXPECT_EQ(table.shape(found.shape), std::vector<std::int64_t>{1000});
}

TEST_F(CaptureTest, ParametersAndBuffersAreDigestedOnly) {
  gradcheck_send(handle(), kHello);
  const Tensor<float> values = wave(64);
  const Tensor<std::int64_t> counter{{7}, {}, DType::i64};
  const gradcheck_view parameter = values.view();
  const gradcheck_view buffer = counter.view();
  const std::int32_t tied = gradcheck_slot(handle(), "Net", "head", "weight");
  EXPECT_EQ(gradcheck_record(handle(), slot("weight"), 0, 0, 0, 0, &parameter, 1, 0), 0);
  EXPECT_EQ(gradcheck_record(handle(), tied, 0, 0, 0, 0, &parameter, 0, 0), 0);
  EXPECT_EQ(gradcheck_record(handle(), slot("count"), 0, 0, 0, 2, &buffer, -1, 0), 0);
  EXPECT_EQ(mark(0, Stage::start), 0);
  const EvidenceTable table = read_back();
  const Entry weight = entry(table, 0, Stage::start, "weight", TensorKind::param);
  EXPECT_FALSE(weight.measured);
  EXPECT_EQ(weight.requires_grad, 1);
  EXPECT_EQ(weight.digest, stats_of(values).digest);
  const Entry head = entry(table, 0, Stage::start, "head", TensorKind::param);
  EXPECT_EQ(head.requires_grad, 0);
  EXPECT_EQ(table.text(head.tied_to), "weight");
  const Entry count = entry(table, 0, Stage::start, "count", TensorKind::buffer);
  EXPECT_EQ(count.requires_grad, -1);
  EXPECT_EQ(count.dtype, DType::i64);
  EXPECT_EQ(count.n, 1U);
  EXPECT_TRUE(is_closed(table, 0, Stage::start));
}

TEST_F(CaptureTest, FinalThatEqualsReducedIsADigestOnly) {
  gradcheck_send(handle(), kHello);
  const std::int32_t same = slot("same");
  const std::int32_t clipped = slot("clipped");
  const Tensor<float> values = wave(50);
  const Tensor<float> smaller = wave(50, 0.5F);
  for (std::int64_t step = 0; step < 3; ++step) {
    for (const std::int32_t slot : {same, clipped}) record(slot, step, Stage::reduced, values);
    EXPECT_EQ(record(same, step, Stage::final, values), 0);
    EXPECT_EQ(record(clipped, step, Stage::final, step < 2 ? smaller : values), 0);
  }
  const EvidenceTable table = read_back();
  for (std::int64_t step = 0; step < 3; ++step) {
    const Entry equal = entry(table, step, Stage::final, "same");
    EXPECT_FALSE(equal.measured);
    EXPECT_EQ(equal.digest, stats_of(values).digest);
    EXPECT_EQ(entry(table, step, Stage::final, "clipped").measured, step < 2);
  }
  EXPECT_EQ(entry(table, 1, Stage::final, "clipped").l2, stats_of(smaller).l2);
}

// Digests are comparable between tensors of one form only.
TEST_F(CaptureTest, FinalOfAnotherFormIsMeasuredThoughItsBytesAreEqual) {
  gradcheck_send(handle(), kHello);
  const std::int32_t weight = slot("weight");
  Tensor<float> values = wave(6);
  record(weight, 0, Stage::reduced, values);
  values.sizes = {2, 3};
  record(weight, 0, Stage::final, values);
  EXPECT_TRUE(entry(read_back(), 0, Stage::final, "weight").measured);
}

TEST_F(CaptureTest, AbsentUnreadableZeroAndNonfiniteStayApart) {
  gradcheck_send(handle(), kHello);
  const Tensor<float> values = wave(12);
  const std::int32_t absent = slot("absent");
  record(absent, 0, Stage::start, values);
  gradcheck_view nothing = values.view();
  nothing.data = nullptr;
  gradcheck_view hidden = values.view();
  hidden.unreadable = 1;
  gradcheck_view unknown = values.view();
  unknown.dtype = static_cast<std::int32_t>(DType::other);
  const auto reduced = static_cast<std::int32_t>(Stage::reduced);
  EXPECT_EQ(gradcheck_record(handle(), absent, 0, 0, reduced, 1, nullptr, -1, 0), 0);
  EXPECT_EQ(gradcheck_record(handle(), slot("none"), 0, 0, reduced, 1, &nothing, -1, 0), 0);
  EXPECT_EQ(gradcheck_record(handle(), slot("hidden"), 0, 0, reduced, 1, &hidden, -1, 0), 0);
  EXPECT_EQ(gradcheck_record(handle(), slot("unknown"), 0, 0, reduced, 1, &unknown, -1, 0), 0);
  record(slot("zero"), 0, Stage::reduced, floats({0.F, -0.F}));
  record(slot("nan"), 0, Stage::reduced, floats({std::numeric_limits<float>::quiet_NaN()}));
  record(slot("empty"), 0, Stage::reduced, floats({}));
  EXPECT_EQ(mark(0, Stage::reduced), 0);

  const EvidenceTable table = read_back();
  const auto state = [&](const char* name) { return entry(table, 0, Stage::reduced, name).state; };
  EXPECT_EQ(state("absent"), TensorState::absent);
  EXPECT_EQ(state("none"), TensorState::absent);
  EXPECT_EQ(state("hidden"), TensorState::unreadable);
  EXPECT_EQ(state("unknown"), TensorState::unreadable);
  EXPECT_EQ(state("zero"), TensorState::zero);
  EXPECT_EQ(state("nan"), TensorState::nonfinite);
  EXPECT_EQ(state("empty"), TensorState::zero);
  EXPECT_TRUE(is_closed(table, 0, Stage::reduced));
  const Entry gone = entry(table, 0, Stage::reduced, "absent");
  EXPECT_EQ(table.shape(gone.shape), std::vector<std::int64_t>{12});
}

// Two of one moment make the reader refuse everything.
TEST_F(CaptureTest, TheSameMomentIsNotRecordedTwice) {
  gradcheck_send(handle(), kHello);
  const std::int32_t weight = slot("weight");
  EXPECT_EQ(slot("weight"), weight);
  const Tensor<float> values = wave(5);
  EXPECT_EQ(record(weight, 0, Stage::reduced, values), 0);
  EXPECT_EQ(record(weight, 0, Stage::reduced, values), -1);
  EXPECT_THAT(error(), testing::HasSubstr("'weight' was recorded at this moment already"));
  EXPECT_EQ(record(weight, 1, Stage::reduced, values), 0);
  read_back();
}

TEST_F(CaptureTest, AMarkCountsItsOwnModelStepMicroAndStage) {
  gradcheck_send(handle(), kHello);
  const Tensor<float> values = wave(5);
  const gradcheck_view view = values.view();
  const std::int32_t other = gradcheck_slot(handle(), "Critic", "weight", nullptr);
  const std::int32_t weight = slot("weight");
  record(weight, 4, Stage::reduced, values);
  gradcheck_record(handle(), weight, 4, 1, 2, 1, &view, -1, 0);
  gradcheck_record(handle(), other, 4, 0, 2, 1, &view, -1, 0);
  record(slot("bias"), 4, Stage::reduced, values);
  EXPECT_EQ(mark(4, Stage::reduced), 0);
  EXPECT_EQ(mark(4, Stage::next_forward), 0);
  const EvidenceTable table = read_back();
  ASSERT_EQ(table.rank(0).marks.size(), 2U);
  EXPECT_EQ(table.rank(0).marks[0].tensors, 2U);
  EXPECT_EQ(table.rank(0).marks[1].tensors, 0U);
}

}  // namespace
}  // namespace gradcheck::capture
