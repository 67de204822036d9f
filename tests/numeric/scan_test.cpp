// SPDX-License-Identifier: Apache-2.0
#include "numeric/scan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "numeric/widen.h"
#include "reference.h"

namespace gradcheck {
namespace {

using reference::Bytes;
using reference::bytes_of;

Scan scan_of(DType dtype, const Bytes& bytes) {
  Scan scan;
  scan_elements(dtype, bytes, scan);
  return scan;
}

constexpr Scan kZero{false, false};
constexpr Scan kFinite{true, false};
constexpr Scan kNonfinite{true, true};

// Each pattern alone among zeros, in every place of a word and behind it.
template <class Type>
void expect_every_16_bit_pattern(DType dtype) {
  for (std::uint32_t bits = 0; bits < (1 << 16); ++bits) {
    std::vector<std::uint16_t> elements(19);
    elements[bits % elements.size()] = static_cast<std::uint16_t>(bits);
    const double value = Type::widen(static_cast<std::uint16_t>(bits));
    const Scan wanted{value != 0, !std::isfinite(value)};
    ASSERT_EQ(scan_of(dtype, bytes_of(elements)), wanted) << bits;
  }
}

TEST(Scan, KnowsEvery16BitNumber) {
  expect_every_16_bit_pattern<F16>(DType::f16);
  expect_every_16_bit_pattern<Bf16>(DType::bf16);
}

template <class T>
void expect_limits(DType dtype) {
  using Limits = std::numeric_limits<T>;
  for (std::size_t at = 0; at < 21; ++at) {
    const auto with = [&](T value) {
      std::vector<T> elements(21);
      elements[at] = value;
      return scan_of(dtype, bytes_of(elements));
    };
    EXPECT_EQ(with(T(-0.0)), kZero);
    for (const T value : {Limits::denorm_min(), Limits::min(), Limits::max(), Limits::lowest()}) {
      EXPECT_EQ(with(value), kFinite) << at << " " << value;
    }
    for (const T value : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
      EXPECT_EQ(with(value), kNonfinite) << at << " " << value;
    }
  }
}

TEST(Scan, KnowsTheEdgesOfLargerTypes) {
  expect_limits<float>(DType::f32);
  expect_limits<double>(DType::f64);
}

// A neighbour must not carry into it.
TEST(Scan, TakesTheLargestNumbersSideBySideForFinite) {
  std::vector<float> elements(33, std::numeric_limits<float>::max());
  EXPECT_EQ(scan_of(DType::f32, bytes_of(elements)), kFinite);
  for (float& element : elements) element = -element;
  EXPECT_EQ(scan_of(DType::f32, bytes_of(elements)), kFinite);
}

TEST(Scan, AsksIntegersForTheirBitsOnly) {
  EXPECT_EQ(scan_of(DType::i64, bytes_of(std::vector<std::int64_t>{0, 0, -1})), kFinite);
  EXPECT_EQ(scan_of(DType::boolean, Bytes(40)), kZero);
  EXPECT_EQ(scan_of(DType::f32, Bytes()), kZero);
}

TEST(Scan, AddsUpWhatPiecesShow) {
  Scan scan;
  scan_elements(DType::f32, bytes_of(std::vector<float>{NAN}), scan);
  scan_elements(DType::f32, bytes_of(std::vector<float>{0}), scan);
  EXPECT_EQ(scan, kNonfinite);
}

}  // namespace
}  // namespace gradcheck
