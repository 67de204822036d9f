// SPDX-License-Identifier: Apache-2.0
#include "numeric/kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <algorithm>
#include <cfenv>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>

#include "numeric/kernel_isa.h"
#include "reference.h"

namespace gradcheck {
namespace {

using reference::Bytes;
using reference::bytes_of;

constexpr DType kMeasured[] = {DType::f64, DType::f32, DType::f16, DType::bf16};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLargest = std::numeric_limits<double>::max();

class EveryIsa : public testing::TestWithParam<Isa> {
 protected:
  static TensorStats run(DType dtype, std::span<const std::byte> bytes,
                         std::uint64_t first_index = 0) {
    Kernel kernel(dtype, KernelMode::full, first_index, GetParam());
    kernel.update(bytes);
    return kernel.finish();
  }

  static void expect_reference(DType dtype, std::span<const std::byte> bytes,
                               std::uint64_t first_index = 0) {
    EXPECT_EQ(reference::bits(run(dtype, bytes, first_index)),
              reference::bits(reference::measure(dtype, bytes, first_index)))
        << name_of(dtype) << ", " << bytes.size() << " bytes, first " << first_index;
  }
};

INSTANTIATE_TEST_SUITE_P(Kernel, EveryIsa, testing::ValuesIn(available_isas()),
                         [](const auto& isa) { return std::string(name_of(isa.param)); });

// Exact in every measured type.
Bytes small_integers(DType dtype, std::size_t n) {
  std::vector<double> wide(n);
  std::vector<float> single(n);
  std::vector<std::uint16_t> brain(n);
  for (std::size_t i = 0; i < n; ++i) {
    wide[i] = static_cast<double>(i * 7 % 11) - 5;
    single[i] = static_cast<float>(wide[i]);
    brain[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(single[i]) >> 16);
  }
  if (dtype == DType::f64) return bytes_of(wide);
  return dtype == DType::f32 ? bytes_of(single) : bytes_of(brain);
}

Sketch sum(const Sketch& a, const Sketch& b) {
  Sketch result;
  std::transform(a.begin(), a.end(), b.begin(), result.begin(), std::plus());
  return result;
}

double norm_squared(std::span<const double> x) {
  return std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
}

std::vector<double> normal_values(std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> x(n);
  for (double& value : x) value = normal(random);
  return x;
}

TEST_P(EveryIsa, DigestIsOneShotXxh3AtEveryByteSize) {
  const Bytes bytes = reference::random_bits(4099, 1);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const auto part = std::span(bytes).first(size);
    ASSERT_EQ(run(DType::u8, part).digest, reference::digest(part)) << size;
  }
}

TEST_P(EveryIsa, FlippingAnyByteChangesTheDigest) {
  Bytes bytes = reference::random_bits(4096, 2);
  std::set<Digest> digests = {run(DType::f32, bytes).digest};
  for (std::byte& b : bytes) {
    b ^= std::byte{1};
    digests.insert(run(DType::i8, bytes).digest);
    b ^= std::byte{1};
  }
  EXPECT_EQ(digests.size(), bytes.size() + 1);
}

TEST_P(EveryIsa, UnmeasuredTypesHaveDigestAndCountOnly) {
  const Bytes bytes = reference::random_bits(4800, 3);
  for (int i = 0; i <= static_cast<int>(DType::other); ++i) {
    const auto dtype = static_cast<DType>(i);
    if (is_measured(dtype)) continue;
    TensorStats expected;
    expected.digest = reference::digest(bytes);
    expected.n = dtype == DType::other ? bytes.size() : bytes.size() / size_of(dtype);
    EXPECT_EQ(reference::bits(run(dtype, bytes)), reference::bits(expected)) << name_of(dtype);
  }
}

TEST_P(EveryIsa, DigestOnlyLeavesMeasuredTypesUnmeasured) {
  const Bytes bytes = reference::ordinary(DType::f32, 1000, 4);
  Kernel kernel(DType::f32, KernelMode::digest_only, 0, GetParam());
  kernel.update(bytes);
  TensorStats expected;
  expected.digest = reference::digest(bytes);
  expected.n = 1000;
  EXPECT_EQ(reference::bits(kernel.finish()), reference::bits(expected));
}

TEST_P(EveryIsa, EverySizeUpTo4099) {
  const Bytes bytes = reference::ordinary(DType::f32, 4099, 5);
  for (std::size_t n = 0; n <= 4099; ++n) {
    expect_reference(DType::f32, std::span(bytes).first(4 * n));
  }
}

TEST_P(EveryIsa, EveryMeasuredTypeAtManySizes) {
  for (const DType dtype : kMeasured) {
    const Bytes bytes = reference::ordinary(dtype, (1 << 20) + 1, 6);
    for (const std::size_t n : {0, 1, 31, 32, 33, 1023, 1024, 4095, 4096, 4099, 9999, (1 << 20) - 1,
                                1 << 20, (1 << 20) + 1}) {
      expect_reference(dtype, std::span(bytes).first(n * size_of(dtype)));
    }
  }
}

TEST_P(EveryIsa, EveryAlignment) {
  Bytes buffer(16384);
  const std::size_t aligned = 64 - reinterpret_cast<std::uintptr_t>(buffer.data()) % 64;
  for (const DType dtype : kMeasured) {
    const Bytes bytes = reference::ordinary(dtype, 1500, 7);
    for (std::size_t offset = 0; offset < 64; ++offset) {
      const auto moved = std::span(buffer).subspan(aligned + offset, bytes.size());
      std::ranges::copy(bytes, moved.begin());
      expect_reference(dtype, moved);
    }
  }
}

TEST_P(EveryIsa, EveryBitPatternIncludingNanInfinityAndSubnormals) {
  for (const DType dtype : kMeasured) {
    expect_reference(dtype, reference::random_bits(1 << 18, 8));
    expect_reference(dtype, reference::random_bits(1 << 16, 9), 12345);
  }
}

// Below 2 in magnitude, subnormals included, so that no sum overflows and hides the rest.
TEST_P(EveryIsa, EveryBitPatternBelowTwo) {
  for (const DType dtype : kMeasured) {
    Bytes bytes = reference::random_bits(1 << 18, 18);
    for (std::size_t top = size_of(dtype) - 1; top < bytes.size(); top += size_of(dtype)) {
      bytes[top] &= std::byte{0xbf};
    }
    ASSERT_TRUE(run(dtype, bytes).has_sketch);
    expect_reference(dtype, bytes, 31);
  }
}

TEST_P(EveryIsa, OneNonfiniteElementAnywhereInFastChunks) {
  for (const DType dtype : kMeasured) {
    const Bytes ordinary = reference::ordinary(dtype, 20000, 10);
    const Bytes nan(size_of(dtype), std::byte{0xff});
    for (std::size_t at = 0; at < 20000; at += 613) {
      Bytes bytes = ordinary;
      std::copy(nan.begin(), nan.end(),
                bytes.begin() + static_cast<std::ptrdiff_t>(at * size_of(dtype)));
      expect_reference(dtype, bytes);
    }
  }
}

TEST_P(EveryIsa, InfinitiesOfBothSignsAreCountedAndAddNothing) {
  std::vector<double> x(100, 2.0);
  x[3] = kInfinity;
  x[40] = -kInfinity;
  x[99] = kNan;
  const TensorStats stats = run(DType::f64, bytes_of(x));
  EXPECT_EQ(stats.inf, 2);
  EXPECT_EQ(stats.nan, 1);
  EXPECT_EQ(stats.l1, 194);
  EXPECT_EQ(stats.max_abs, 2);
  expect_reference(DType::f64, bytes_of(x));
}

TEST_P(EveryIsa, NoFiniteElementMeansZeroExtrema) {
  const TensorStats stats = run(DType::f32, bytes_of(std::vector<float>(64, NAN)));
  EXPECT_EQ(stats.nan, 64);
  EXPECT_EQ(stats.min, 0);
  EXPECT_EQ(stats.max, 0);
  EXPECT_TRUE(stats.has_sketch);
}

TEST_P(EveryIsa, NegativeZerosCountAsZerosAndLeaveNoSign) {
  const Bytes zeros = bytes_of(std::vector<float>(1000, -0.0F));
  EXPECT_EQ(run(DType::f32, zeros).zeros, 1000);
  EXPECT_FALSE(std::signbit(run(DType::f32, zeros).min));
  expect_reference(DType::f32, zeros);
  EXPECT_NE(run(DType::f32, zeros).digest,
            run(DType::f32, bytes_of(std::vector<float>(1000))).digest);
}

TEST_P(EveryIsa, SubnormalsAreNotZeros) {
  const std::vector<float> x(1000, std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(run(DType::f32, bytes_of(x)).zeros, 0);
  EXPECT_EQ(run(DType::f32, bytes_of(x)).l1, 1000 * 0x1p-149);
  expect_reference(DType::f64, bytes_of(std::vector<double>(777, 0x1p-1074)));
}

TEST_P(EveryIsa, SquaresThatOverflowStopAtTheLargestDouble) {
  std::vector<double> x(5000, 1e200);
  const TensorStats stats = run(DType::f64, bytes_of(x));
  EXPECT_EQ(stats.l2, kLargest);
  EXPECT_TRUE(stats.has_sketch);
  EXPECT_LT(stats.l1, kLargest);
  expect_reference(DType::f64, bytes_of(x));
}

TEST_P(EveryIsa, SketchThatOverflowsIsLeftOut) {
  std::vector<double> x(5000, kLargest);
  std::fill(x.begin() + 4000, x.end(), 1.0);
  const TensorStats stats = run(DType::f64, bytes_of(x));
  EXPECT_EQ(stats.l1, kLargest);
  EXPECT_FALSE(stats.has_sketch);
  EXPECT_EQ(stats.sketch, Sketch{});
  expect_reference(DType::f64, bytes_of(x));
}

TEST_P(EveryIsa, HandWorkedValues) {
  const TensorStats stats = run(DType::f32, bytes_of(std::vector<float>{3, -4, 0, -0.0F}));
  EXPECT_EQ(stats.n, 4);
  EXPECT_EQ(stats.zeros, 2);
  EXPECT_EQ(stats.l1, 7);
  EXPECT_EQ(stats.l2, 5);
  EXPECT_EQ(stats.min, -4);
  EXPECT_EQ(stats.max, 3);
  EXPECT_EQ(stats.max_abs, 4);
}

TEST_P(EveryIsa, AnyCutGivesTheSameResult) {
  std::mt19937_64 random(11);
  for (const DType dtype : kMeasured) {
    const Bytes bytes = reference::random_bits(30000 * size_of(dtype), 12);
    const std::uint64_t first_index = random() >> 20;
    const auto whole = reference::bits(reference::measure(dtype, bytes, first_index));
    for (const std::size_t longest : {1, 2, 33, 100, 5000, 20000}) {
      Kernel kernel(dtype, KernelMode::full, first_index, GetParam());
      for (auto rest = std::span(bytes); !rest.empty();) {
        const std::size_t n = random() % (longest + 1);  // empty chunks too
        const auto chunk = rest.first(std::min(rest.size(), n * size_of(dtype)));
        kernel.update(chunk);
        rest = rest.subspan(chunk.size());
      }
      EXPECT_EQ(reference::bits(kernel.finish()), whole) << name_of(dtype) << " " << longest;
    }
  }
}

TEST_P(EveryIsa, FirstIndexAnywhereInABlock) {
  const Bytes bytes = reference::ordinary(DType::bf16, 5000, 13);
  for (std::uint64_t first = 0; first < 70; ++first) expect_reference(DType::bf16, bytes, first);
}

TEST_P(EveryIsa, CallersRoundingAndFlushingDoNotMatterAndAreRestored) {
  const Bytes bytes = bytes_of(std::vector<float>(3000, 0x1.234p-140F));
  const auto expected = reference::bits(reference::measure(DType::f32, bytes));
  constexpr unsigned kFlush = 0x8040;  // FTZ and DAZ of MXCSR
  const unsigned before = _mm_getcsr();
  std::fesetround(FE_UPWARD);
  _mm_setcsr(_mm_getcsr() | kFlush);
  const auto measured = reference::bits(run(DType::f32, bytes));
  const bool restored = std::fegetround() == FE_UPWARD && (_mm_getcsr() & kFlush) == kFlush;
  std::fesetround(FE_TONEAREST);
  _mm_setcsr(before);
  EXPECT_EQ(measured, expected);
  EXPECT_TRUE(restored);
}

TEST(Kernel, ChunkThatCutsAnElementIsRefused) {
  Kernel kernel(DType::f32, KernelMode::full);
  EXPECT_THROW(kernel.update(Bytes(7)), std::invalid_argument);
}

TEST(Kernel, MissingInstructionSetIsRefusedNotReplaced) {
  const auto present = available_isas();
  for (const Isa isa : {Isa::portable, Isa::avx2, Isa::avx512}) {
    const auto build = [&] { Kernel kernel(DType::f32, KernelMode::full, 0, isa); };
    if (std::ranges::count(present, isa)) {
      EXPECT_NO_THROW(build());
    } else {
      EXPECT_THROW(build(), std::invalid_argument);
    }
  }
  EXPECT_EQ(present.front(), Isa::portable);
  EXPECT_EQ(present.back(), best_isa());
}

// First outputs of the published splitmix64.c for seed 1234567 (Rosetta Code, "Pseudo-random
// numbers/Splitmix64").
TEST(Kernel, BlockHashIsThePublishedSplitmix64) {
  const std::uint64_t block = 1234567 - 0x67726164636865U;
  EXPECT_EQ(block_hash(block), 6457827717110365317U);
  EXPECT_EQ(block_hash(block + 0x9e3779b97f4a7c15U), 3203168211198807973U);
}

TEST_P(EveryIsa, ShardsSketchesAddUpExactlyWhereSumsAreExact) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    const Bytes bytes = small_integers(dtype, 10000);
    const auto full = run(dtype, bytes).sketch;
    for (const std::size_t cut : {1, 32, 77, 4096, 9999}) {
      const auto head = std::span(bytes).first(cut * size_of(dtype));
      const auto tail = std::span(bytes).subspan(cut * size_of(dtype));
      EXPECT_EQ(sum(run(dtype, head).sketch, run(dtype, tail, cut).sketch), full) << cut;
    }
  }
}

TEST(Kernel, SketchIsLinear) {
  const auto x = normal_values(50000, 14);
  const auto y = normal_values(50000, 15);
  std::vector<double> combined(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) combined[i] = 3 * x[i] + y[i];
  const auto of = [](const auto& v) { return measure(DType::f64, bytes_of(v)).sketch; };
  for (int k = 0; k < kSketchBuckets; ++k) {
    EXPECT_NEAR(of(combined)[k], 3 * of(x)[k] + of(y)[k], 1e-10);
  }
}

// Over 400 draws the mean of ||S||²/||x||² has a standard deviation near 0.0125.
TEST(Kernel, SketchNormIsTheTensorsNormInExpectation) {
  double ratio = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const auto x = normal_values(2048, seed);
    ratio += norm_squared(measure(DType::f64, bytes_of(x)).sketch) / norm_squared(x) / 400;
  }
  EXPECT_NEAR(ratio, 1, 0.05);
}

// A bias gradient broadcast along rows puts everything in one column, that is in one lane: plain
// "bucket = index mod 32" would pile it up.
TEST(Kernel, MatrixColumnDoesNotPileUpInOneBucket) {
  std::vector<float> matrix(1024 * 1024);
  for (std::size_t row = 0; row < 1024; ++row) matrix[row * 1024 + 5] = 1;
  const auto stats = measure(DType::f32, bytes_of(matrix));
  EXPECT_NEAR(norm_squared(stats.sketch) / 1024, 1, 0.75);
  EXPECT_LT(std::ranges::max(stats.sketch), 40);
}

TEST(TrainCheck, MatricesThatDifferEverywhereButInRowZeroHaveOtherDigests) {
  std::vector<float> a(64 * 64, 1.0F);
  std::vector<float> b(64 * 64, 2.0F);
  std::fill_n(b.begin(), 64, 1.0F);
  EXPECT_NE(measure(DType::f32, bytes_of(a)).digest, measure(DType::f32, bytes_of(b)).digest);
}

TEST(TrainCheck, UnrelatedTinyGradientsHaveOtherDigestsAndSketches) {
  auto a = normal_values(4096, 16);
  auto b = normal_values(4096, 17);
  for (double& x : a) x *= 1e-9;
  for (double& x : b) x *= 1e-9;
  const auto of_a = measure(DType::f64, bytes_of(a));
  const auto of_b = measure(DType::f64, bytes_of(b));
  EXPECT_NE(of_a.digest, of_b.digest);
  EXPECT_NE(of_a.sketch, of_b.sketch);
  EXPECT_GT(of_a.l2, 0);
}

TEST(TrainCheck, NanVectorIsNotAnInfVector) {
  const auto nan = measure(DType::f32, bytes_of(std::vector<float>(128, NAN)));
  const auto inf = measure(DType::f32, bytes_of(std::vector<float>(128, INFINITY)));
  EXPECT_NE(nan.digest, inf.digest);
  EXPECT_EQ(nan.nan, 128);
  EXPECT_EQ(inf.inf, 128);
}

}  // namespace
}  // namespace gradcheck
