// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "numeric/kernel.h"
#include "probes/python/capture/merge.h"
#include "support.h"

namespace gradcheck::capture {
namespace {

TensorStats stats_of(const Tensor<float>& tensor) {
  return measure(tensor.dtype, std::as_bytes(std::span(tensor.elements)));
}

Tensor<float> sum_of(const Tensor<float>& a, const Tensor<float>& b) {
  Tensor<float> sum = a;
  for (std::size_t i = 0; i < sum.elements.size(); ++i) sum.elements[i] += b.elements[i];
  return sum;
}

TEST_F(CaptureTest, OneFiringIsRecordedAsItCame) {
  gradcheck_send(handle(), kHello);
  const std::int32_t weight = slot("weight");
  const std::int32_t unused = slot("unused");
  const Tensor<float> gradient = wave(300);
  record(unused, 0, Stage::start, wave(8));
  EXPECT_EQ(local(weight, gradient), 0);
  EXPECT_EQ(close_local(0, {weight, unused}), 0) << error();
  const EvidenceTable table = read_back();
  const Entry came = entry(table, 0, Stage::local, "weight");
  EXPECT_EQ(came.digest, stats_of(gradient).digest);
  EXPECT_TRUE(came.measured);
  const Entry absent = entry(table, 0, Stage::local, "unused");
  EXPECT_EQ(absent.state, TensorState::absent);
  EXPECT_EQ(table.shape(absent.shape), std::vector<std::int64_t>{8});
  EXPECT_TRUE(is_closed(table, 0, Stage::local));
}

TEST_F(CaptureTest, SketchesOfSeveralFiringsAddUpToTheSketchOfTheSum) {
  gradcheck_send(handle(), kHello);
  const std::int32_t weight = slot("weight");
  const Tensor<float> a = wave(5000);
  Tensor<float> b = wave(5000, -3);
  std::reverse(b.elements.begin(), b.elements.end());
  EXPECT_EQ(local(weight, a), 0);
  EXPECT_EQ(local(weight, b), 0);
  EXPECT_EQ(close_local(0, {weight}), 0);
  const EvidenceTable table = read_back();
  const Entry both = entry(table, 0, Stage::local, "weight");
  const TensorStats right = stats_of(sum_of(a, b));
  ASSERT_NE(table.sketch(both), nullptr);
  const double tolerance = std::ldexp(stats_of(a).l1 + stats_of(b).l1, -23);
  for (std::size_t i = 0; i < right.sketch.size(); ++i) {
    EXPECT_NEAR((*table.sketch(both))[i], right.sketch[i], tolerance);
  }
  EXPECT_EQ(both.n, 5000U);
  EXPECT_EQ(both.l1, stats_of(a).l1 + stats_of(b).l1);
  EXPECT_GE(both.l2, right.l2);
  EXPECT_GE(both.max_abs, right.max_abs);
  EXPECT_LE(both.min, right.min);
  EXPECT_GE(both.max, right.max);
  EXPECT_EQ(both.digest, merged(stats_of(a), stats_of(b)).digest);
  EXPECT_NE(both.digest, stats_of(a).digest);
}

// Half of the elements zero in one, the other half in the other: the sum is not zero.
TEST_F(CaptureTest, ZerosOfTwoFiringsDoNotMakeAZeroTensor) {
  gradcheck_send(handle(), kHello);
  const std::int32_t halves = slot("halves");
  const std::int32_t nothing = slot("nothing");
  local(halves, floats({1, 0}));
  local(halves, floats({0, 1}));
  local(nothing, floats({0, 0}));
  local(nothing, floats({0, -0.F}));
  close_local(0, {halves, nothing});
  const EvidenceTable table = read_back();
  EXPECT_EQ(entry(table, 0, Stage::local, "halves").state, TensorState::finite);
  EXPECT_EQ(entry(table, 0, Stage::local, "nothing").state, TensorState::zero);
}

TEST_F(CaptureTest, FiringsThatCannotBeAddedAreUnreadable) {
  gradcheck_send(handle(), kHello);
  const std::int32_t weight = slot("weight");
  local(weight, floats({1, 2}));
  local(weight, floats({1, 2, 3}));
  close_local(0, {weight});
  EXPECT_EQ(entry(read_back(), 0, Stage::local, "weight").state, TensorState::unreadable);
}

TEST_F(CaptureTest, NonfiniteFiringsAreNeverMoreThanTheElements) {
  gradcheck_send(handle(), kHello);
  const std::int32_t weight = slot("weight");
  for (int i = 0; i < 3; ++i) local(weight, floats({INFINITY, NAN}));
  close_local(0, {weight});
  const Entry entry = this->entry(read_back(), 0, Stage::local, "weight");
  EXPECT_EQ(entry.state, TensorState::nonfinite);
  EXPECT_EQ(entry.nan + entry.inf, 2U);
}

TEST_F(CaptureTest, AClosedLocalIsEmptyAgainAndADroppedOneToo) {
  gradcheck_send(handle(), kHello);
  const std::int32_t weight = slot("weight");
  local(weight, floats({1}));
  close_local(0, {weight});
  close_local(1, {weight});
  local(weight, floats({5}));
  EXPECT_EQ(gradcheck_drop_local(handle(), &weight, 1), 0);
  local(weight, floats({2}));
  close_local(2, {weight});
  const EvidenceTable table = read_back();
  EXPECT_EQ(entry(table, 1, Stage::local, "weight").state, TensorState::absent);
  EXPECT_EQ(entry(table, 2, Stage::local, "weight").l1, 2);
}

TEST_F(CaptureTest, SlotsOfOneCloseAreDistinctAndOfOneModel) {
  gradcheck_send(handle(), kHello);
  const std::int32_t weight = slot("weight");
  const std::int32_t other = gradcheck_slot(handle(), "Critic", "weight", nullptr);
  EXPECT_EQ(close_local(0, {weight, other}), -1);
  EXPECT_EQ(close_local(0, {weight, weight}), -1);
  EXPECT_EQ(close_local(0, {}), -1);
  EXPECT_EQ(close_local(0, {weight}), 0) << "what failed changed nothing";
  EXPECT_TRUE(is_closed(read_back(), 0, Stage::local));
}

TEST(Merge, DigestsAreHashedInCanonicalFormAndOrder) {
  TensorStats a;
  a.digest = {0x0102030405060708, 0x090a0b0c0d0e0f10};
  TensorStats b;
  b.digest = {0x1112131415161718, 0x191a1b1c1d1e1f20};
  std::array<std::byte, 32> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i + 1);
  EXPECT_EQ(merged(a, b).digest, measure(DType::u8, bytes).digest);
  EXPECT_NE(merged(a, b).digest, merged(b, a).digest);
}

TEST(Merge, SumsThatOverflowStayFiniteAndTheSketchIsLeftOut) {
  TensorStats big;
  big.n = 1;
  big.measured = big.has_sketch = true;
  big.l1 = big.l2 = big.max = big.max_abs = 1.7e308;
  big.min = -1.7e308;
  big.sketch[0] = 1.7e308;
  const TensorStats sum = merged(big, big);
  EXPECT_TRUE(std::isfinite(sum.l1) && std::isfinite(sum.min) && std::isfinite(sum.max));
  EXPECT_FALSE(sum.has_sketch);
}

}  // namespace
}  // namespace gradcheck::capture
