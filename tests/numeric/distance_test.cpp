// SPDX-License-Identifier: Apache-2.0
#include "numeric/distance.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "reference.h"

namespace gradcheck {
namespace {

using reference::Bytes;
using reference::bytes_of;

Bytes every_16_bit_pattern() {
  std::vector<std::uint16_t> patterns(1 << 16);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<std::uint16_t>(i);
  return bytes_of(patterns);
}

std::uint64_t as_bits(double x) {
  return std::isnan(x) ? ~std::uint64_t{0} : std::bit_cast<std::uint64_t>(x);
}

void expect_widened(DType dtype, const Bytes& bytes) {
  std::vector<double> out(bytes.size() / size_of(dtype));
  to_double(dtype, bytes, 0, out);
  for (std::size_t i = 0; i < out.size(); ++i) {
    ASSERT_EQ(as_bits(out[i]), as_bits(reference::value(dtype, bytes, i))) << i;
  }
}

TEST(ToDouble, Every16BitPatternIsExact) {
  expect_widened(DType::f16, every_16_bit_pattern());
  expect_widened(DType::bf16, every_16_bit_pattern());
}

TEST(ToDouble, AnyBitsOfWiderTypesAreExact) {
  expect_widened(DType::f32, reference::random_bits(40000, 1));
  expect_widened(DType::f64, reference::random_bits(40000, 2));
}

TEST(ToDouble, StartsWhereAskedAndStopsWithTheSpan) {
  const Bytes bytes = bytes_of(std::vector<float>{1, 2, 3, 4});
  std::vector<double> out(2);
  to_double(DType::f32, bytes, 1, out);
  EXPECT_EQ(out, (std::vector<double>{2, 3}));
}

TEST(ToDouble, BeyondTheEndOrWithoutValuesIsRefused) {
  const Bytes bytes = bytes_of(std::vector<float>{1, 2, 3, 4});
  std::vector<double> out(2);
  EXPECT_THROW(to_double(DType::f32, bytes, 3, out), std::invalid_argument);
  EXPECT_THROW(to_double(DType::f32, bytes, SIZE_MAX, out), std::invalid_argument);
  EXPECT_THROW(to_double(DType::i32, bytes, 0, out), std::invalid_argument);
}

TEST(Difference, EqualTensorsDifferNowhereNanIncluded) {
  const Bytes bytes = reference::random_bits(1 << 16, 3);
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    EXPECT_EQ(difference(dtype, bytes, bytes).differing, 0);
  }
}

TEST(Difference, LargestGapIsTakenInDouble) {
  const auto a = bytes_of(std::vector<float>{1, 2, 3, 16777216});
  const auto b = bytes_of(std::vector<float>{1, 2.5, 3, -1});
  const Difference found = difference(DType::f32, a, b);
  EXPECT_EQ(found.differing, 2);
  EXPECT_EQ(found.max_abs, 16777217);
  EXPECT_EQ(found.nonfinite, 0);
}

TEST(Difference, SignOfZeroDiffersByNothing) {
  const auto found = difference(DType::f64, bytes_of(std::vector<double>{0.0, 1}),
                                bytes_of(std::vector<double>{-0.0, 1}));
  EXPECT_EQ(found.differing, 1);
  EXPECT_EQ(found.sign_of_zero, 1);
  EXPECT_EQ(found.max_abs, 0);
}

TEST(Difference, NonfiniteElementsAreCountedAndLeaveTheGapFinite) {
  const auto a = bytes_of(std::vector<float>{NAN, INFINITY, -INFINITY, 1, INFINITY, 5});
  const auto b = bytes_of(std::vector<float>{1, INFINITY, INFINITY, NAN, NAN, 4});
  const Difference found = difference(DType::f32, a, b);
  EXPECT_EQ(found.differing, 5);
  EXPECT_EQ(found.nonfinite, 4);
  EXPECT_EQ(found.nan_payload, 0);
  EXPECT_EQ(found.max_abs, 1);
}

TEST(Difference, NanPayloadsAreToldApartFromNanAgainstNumber) {
  const auto a = bytes_of(std::vector<std::uint16_t>{0x7fc0, 0x7fc0, 0x7fc0});
  const auto b = bytes_of(std::vector<std::uint16_t>{0x7fc0, 0xffc1, 0x3f80});
  const Difference found = difference(DType::bf16, a, b);
  EXPECT_EQ(found.differing, 2);
  EXPECT_EQ(found.nonfinite, 2);
  EXPECT_EQ(found.nan_payload, 1);
}

TEST(Difference, GapBeyondDoubleStaysFinite) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  const auto found = difference(DType::f64, bytes_of(std::vector<double>{kLargest}),
                                bytes_of(std::vector<double>{-kLargest}));
  EXPECT_EQ(found.max_abs, kLargest);
}

TEST(Difference, OneElementFarIntoALongTensorIsFound) {
  std::vector<double> values(100000, 1.0);
  const auto a = bytes_of(values);
  values[99999] = 3;
  const Difference found = difference(DType::f64, a, bytes_of(values));
  EXPECT_EQ(found.differing, 1);
  EXPECT_EQ(found.max_abs, 2);
}

TEST(Difference, UnequalSizesCutElementsAndOtherTypesAreRefused) {
  EXPECT_THROW(difference(DType::f32, Bytes(4), Bytes(8)), std::invalid_argument);
  EXPECT_THROW(difference(DType::f32, Bytes(6), Bytes(6)), std::invalid_argument);
  EXPECT_THROW(difference(DType::i64, Bytes(8), Bytes(8)), std::invalid_argument);
}

}  // namespace
}  // namespace gradcheck
