// SPDX-License-Identifier: Apache-2.0
#include "verdict/dump_distances.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gradcheck {
namespace {

TensorView view_of(const std::vector<float>& values) {
  return {DType::f32, {static_cast<std::int64_t>(values.size())}, std::as_bytes(std::span(values))};
}

constexpr Tolerance kExact;
const Tolerance kUlp{ToleranceKind::ulp, 1, 0};
const Tolerance kNorm{ToleranceKind::norm, 0, 0.5};

TensorDistance distance(const std::vector<float>& reference, const std::vector<float>& value) {
  const TensorView a = view_of(reference), b = view_of(value);
  const TensorView* values[] = {&b};
  return distance_to(a, values, true);
}

TEST(DumpDistances, AreWithinOnlyWhatIsAllowed) {
  const std::vector<float> one = {1, 2}, next = {std::nextafter(1.0F, 2.0F), 2}, far = {3, 2};
  EXPECT_TRUE(is_within(distance(one, next), kUlp));
  EXPECT_FALSE(is_within(distance(one, far), kUlp));
  EXPECT_TRUE(is_within(distance(one, next), kNorm));
  EXPECT_FALSE(is_within(distance(one, far), kNorm));
  EXPECT_FALSE(is_within(distance(one, next), kExact));
}

TEST(DumpDistances, AreNeverWithinWhereANumberMeetsNone) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tolerance all_ulps{ToleranceKind::ulp, ~std::uint64_t{0}, 0};
  const Tolerance all_norms{ToleranceKind::norm, 0, 1};
  for (const float value : {NAN, inf, -inf}) {
    const TensorDistance gap = distance({1, 2}, {value, 2});
    EXPECT_FALSE(is_within(gap, all_ulps)) << value;
    EXPECT_FALSE(is_within(gap, all_norms)) << value;
  }
}

TEST(DumpDistances, OfZerosAreNothingOrEverything) {
  EXPECT_TRUE(is_within(distance({0, 0}, {-0.0F, 0}), kNorm));
  EXPECT_FALSE(is_within(distance({0, 0}, {1e-30F, 0}), kNorm));
}

TEST(DumpDistances, AreNotKnownAcrossShapes) {
  const std::vector<float> two = {1, 2}, three = {1, 2, 3};
  EXPECT_FALSE(is_within(distance(two, three), kNorm));
  const TensorView a = view_of(two), b = view_of(three);
  const TensorView* values[] = {&a, &b};
  EXPECT_FALSE(distance_among(values).comparable);
}

TEST(DumpDistances, OfSeveralValuesAreTheLargest) {
  const std::vector<float> a = {1}, b = {1.5}, c = {4};
  const TensorView first = view_of(a), second = view_of(b), third = view_of(c);
  const TensorView* values[] = {&second, &third};
  EXPECT_EQ(distance_to(first, values, false).elements.max_abs, 3);
  EXPECT_EQ(distance_to(first, values, true).norm, 3);
}

TEST(DumpDistances, AddUpInAReading) {
  const std::vector<float> a = {1, 0, 5}, b = {2, -0.0F, 5};
  DumpReading reading;
  DumpTensor row;
  row.name = "w";
  add_distance(reading, distance(a, b), row);
  EXPECT_EQ(reading.differing_elements, 2U);
  EXPECT_EQ(reading.sign_of_zero_elements, 1U);
  ASSERT_EQ(reading.rows.size(), 1U);
  EXPECT_EQ(reading.rows.front().max_abs, 1);
}

}  // namespace
}  // namespace gradcheck
