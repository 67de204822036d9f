// SPDX-License-Identifier: Apache-2.0
#include "numeric/ulps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "reference.h"

namespace gradcheck {
namespace {

using reference::bytes_of;

template <class T>
UlpDistance between(DType dtype, std::vector<T> a, std::vector<T> b) {
  return ulp_distance(dtype, bytes_of(a), bytes_of(b));
}

UlpDistance between(float a, float b) {
  return between<float>(DType::f32, std::vector{a}, std::vector{b});
}

std::uint64_t count(const UlpDistance& distance) {
  std::uint64_t sum = 0;
  for (const std::uint64_t elements : distance.counts) sum += elements;
  return sum;
}

TEST(Ulps, CountTheNumbersInBetween) {
  EXPECT_EQ(between(1.0F, 1.0F).largest, 0U);
  EXPECT_EQ(between(1.0F, std::nextafter(1.0F, 2.0F)).largest, 1U);
  EXPECT_EQ(between(1.0F, 2.0F).largest, 1U << 23);
  const double next = std::nextafter(-3.0, -4.0);
  EXPECT_EQ(between(DType::f64, std::vector{-3.0}, std::vector{next}).largest, 1U);
  EXPECT_EQ(
      between(DType::bf16, std::vector<std::uint16_t>{0x3f80}, std::vector<std::uint16_t>{0x3f83})
          .largest,
      3U);
}

TEST(Ulps, GoThroughZero) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(between(-tiny, tiny).largest, 2U);
  EXPECT_EQ(between(-tiny, tiny).sign_changes, 1U);
  EXPECT_EQ(between(-tiny, 0.0F).largest, 1U);
  EXPECT_EQ(between(-tiny, 0.0F).sign_changes, 0U);
  EXPECT_EQ(count(between(-0.0F, 0.0F)), 0U);
}

TEST(Ulps, ReachFromEndToEnd) {
  const double most = std::numeric_limits<double>::max();
  const auto distance = between(DType::f64, std::vector{-most}, std::vector{most});
  EXPECT_EQ(distance.largest, 2 * 0x7fefffffffffffffU);
  EXPECT_EQ(distance.counts.back(), 1U);
}

TEST(Ulps, HaveNoNumberForWhatIsNotFinite) {
  for (const float value : {NAN, INFINITY, -INFINITY}) {
    const UlpDistance distance = between(value, 1.0F);
    EXPECT_EQ(distance.nonfinite, 1U);
    EXPECT_EQ(count(distance), 0U);
    EXPECT_EQ(between(value, value).nonfinite, 0U);
  }
}

TEST(Ulps, FillTheHistogramUpToEachLimit) {
  std::vector<std::uint16_t> a(1 << 15), b(1 << 15);
  for (std::size_t i = 0; i < a.size(); ++i) b[i] = static_cast<std::uint16_t>(i % 300);
  const UlpDistance distance = between(DType::bf16, a, b);
  std::array<std::uint64_t, kUlpLimits.size()> wanted{};
  for (const std::uint16_t ulps : b) {
    if (ulps == 0) continue;
    ++wanted[ulps <= 1 ? 0 : ulps <= 4 ? 1 : ulps <= 16 ? 2 : ulps <= 256 ? 3 : 4];
  }
  EXPECT_EQ(distance.counts, wanted);
}

TEST(Ulps, RefuseWhatHasNone) {
  EXPECT_THROW(between(DType::i32, std::vector{1}, std::vector{1}), std::invalid_argument);
  EXPECT_THROW(between(DType::f32, std::vector{1.0F}, std::vector{1.0F, 2.0F}),
               std::invalid_argument);
}

TEST(Norms, MeasureAcrossTypes) {
  const std::vector<float> a = {3, 5, 0};
  const std::vector<double> b = {3, 1, 0};
  const NormDistance distance = norm_distance(DType::f32, bytes_of(a), DType::f64, bytes_of(b));
  EXPECT_DOUBLE_EQ(distance.gap, 4);
  EXPECT_DOUBLE_EQ(distance.norm, std::sqrt(10));
}

TEST(Norms, NeitherVanishNorOverflowWhereTheirSquaresWould) {
  const auto between = [](const std::vector<double>& a, const std::vector<double>& b) {
    return norm_distance(DType::f64, bytes_of(a), DType::f64, bytes_of(b));
  };
  const NormDistance tiny = between({3e-170, 0}, {0, 4e-170});
  EXPECT_DOUBLE_EQ(tiny.gap, 5e-170);
  EXPECT_DOUBLE_EQ(tiny.norm, 4e-170);
  const NormDistance huge = between({1e200, 0}, {1e200, 3e200});
  EXPECT_DOUBLE_EQ(huge.gap, 3e200);
  EXPECT_DOUBLE_EQ(huge.norm, std::sqrt(10) * 1e200);
  EXPECT_GT(between({5e-324}, {0}).gap, 0);
}

TEST(Norms, AreInfiniteWhereANumberMeetsNone) {
  const auto gap = [](double a, double b) {
    return norm_distance(DType::f64, bytes_of(std::vector{a}), DType::f64, bytes_of(std::vector{b}))
        .gap;
  };
  EXPECT_EQ(gap(INFINITY, INFINITY), 0);
  EXPECT_EQ(gap(INFINITY, -INFINITY), INFINITY);
  EXPECT_EQ(gap(NAN, NAN), INFINITY);
  EXPECT_EQ(gap(1, NAN), INFINITY);
}

}  // namespace
}  // namespace gradcheck
