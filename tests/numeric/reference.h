// SPDX-License-Identifier: Apache-2.0
#pragma once
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "model/dtype.h"
#include "model/tensor_stats.h"

// The fused pass written a second time, element by element, from the words of kernel.h and nothing
// of the kernel's code: what its bits are held against.
namespace gradcheck::reference {

using Bytes = std::vector<std::byte>;

// Value of a small binary float from its fields, by scaling: no table, no bit trick.
inline double decode(unsigned bits, int exponent_bits, int mantissa_bits) {
  const unsigned mantissa = bits & ((1U << mantissa_bits) - 1);
  const int top = (1 << exponent_bits) - 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & top;
  const int bias = top / 2;
  double magnitude = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  if (exponent == top) {
    magnitude = mantissa ? std::numeric_limits<double>::quiet_NaN()
                         : std::numeric_limits<double>::infinity();
  } else if (exponent > 0) {
    magnitude = std::ldexp(mantissa + (1U << mantissa_bits), exponent - bias - mantissa_bits);
  }
  return bits >> (exponent_bits + mantissa_bits) ? -magnitude : magnitude;
}

template <class T>
T element(std::span<const std::byte> bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

inline double value(DType dtype, std::span<const std::byte> bytes, std::size_t i) {
  if (dtype == DType::f64) return element<double>(bytes, i);
  if (dtype == DType::f32) return element<float>(bytes, i);
  const unsigned bits = element<std::uint16_t>(bytes, i);
  return dtype == DType::f16 ? decode(bits, 5, 10) : decode(bits, 8, 7);
}

inline Digest digest(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

inline std::uint64_t splitmix64(std::uint64_t x) {
  std::uint64_t z = x + 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

inline double tree(const std::vector<double>& lanes) {
  if (lanes.size() == 1) return lanes[0];
  std::vector<double> half;
  const std::size_t width = lanes.size() / 2;
  for (std::size_t i = 0; i < width; ++i) half.push_back(lanes[i] + lanes[i + width]);
  return tree(half);
}

struct Sums {
  std::vector<double> l1 = std::vector<double>(32);
  std::vector<double> squares = std::vector<double>(32);
};

inline void add(TensorStats& stats, Sums& sums, double x, std::uint64_t index) {
  const bool first = stats.n == stats.nan + stats.inf;
  ++stats.n;
  if (std::isnan(x) || std::isinf(x)) {
    ++(std::isnan(x) ? stats.nan : stats.inf);
    return;
  }
  if (x == 0) ++stats.zeros;
  stats.min = first || x < stats.min ? x : stats.min;
  stats.max = first || x > stats.max ? x : stats.max;
  stats.max_abs = std::fmax(stats.max_abs, std::fabs(x));
  const unsigned lane = index % 32;
  sums.l1[lane] += std::fabs(x);
  sums.squares[lane] += x * x;
  const std::uint64_t hash = splitmix64(0x67726164636865 + index / 32);
  stats.sketch[lane ^ (hash >> 32 & 31)] += hash >> lane & 1 ? -x : x;
}

inline TensorStats measure(DType dtype, std::span<const std::byte> bytes,
                           std::uint64_t first_index = 0) {
  TensorStats stats;
  Sums sums;
  const std::size_t n = bytes.size() / size_of(dtype);
  for (std::size_t i = 0; i < n; ++i) add(stats, sums, value(dtype, bytes, i), first_index + i);
  stats.digest = digest(bytes);
  stats.measured = stats.has_sketch = true;
  stats.l1 = std::fmin(tree(sums.l1), std::numeric_limits<double>::max());
  stats.l2 = std::fmin(std::sqrt(tree(sums.squares)), std::numeric_limits<double>::max());
  if (stats.min == 0) stats.min = 0;  // −0 becomes +0
  if (stats.max == 0) stats.max = 0;
  for (const double bucket : stats.sketch) stats.has_sketch &= std::isfinite(bucket);
  if (!stats.has_sketch) stats.sketch = {};
  return stats;
}

// Every field as bits, so that −0 against +0 or one rounding shows.
inline std::vector<std::uint64_t> bits(const TensorStats& stats) {
  std::vector<std::uint64_t> all = {stats.digest.high, stats.digest.low, stats.n,
                                    stats.nan,         stats.inf,        stats.zeros,
                                    stats.measured,    stats.has_sketch};
  for (const double x : {stats.l1, stats.l2, stats.max_abs, stats.min, stats.max}) {
    all.push_back(std::bit_cast<std::uint64_t>(x));
  }
  for (const double x : stats.sketch) all.push_back(std::bit_cast<std::uint64_t>(x));
  return all;
}

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// All bit patterns equally likely: NaN, infinities and subnormals among them, more in f16.
inline Bytes random_bits(std::size_t bytes, unsigned seed) {
  std::mt19937_64 random(seed);
  Bytes result(bytes);
  for (std::byte& b : result) b = static_cast<std::byte>(random());
  return result;
}

// Finite values of both signs, magnitudes from 2^-8 to 2, one in sixteen of them ±0.
inline Bytes ordinary(DType dtype, std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  Bytes result(n * size_of(dtype));
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t r = random();
    const auto x =
        static_cast<float>(r % 16 ? std::ldexp(1 + static_cast<double>(r >> 40) * 0x1p-24,
                                               -static_cast<int>(r >> 4 & 7))
                                  : 0.0);
    const auto single = std::bit_cast<std::uint32_t>(r & 256 ? -x : x);
    const double wide = std::bit_cast<float>(single) * 1.0000000001;
    const auto half = static_cast<std::uint16_t>((r >> 9 & 0x83ff) | (r % 16 ? 0x3800 : 0));
    const auto brain = static_cast<std::uint16_t>(single >> 16);
    std::byte* to = result.data() + i * size_of(dtype);
    if (dtype == DType::f64) std::memcpy(to, &wide, 8);
    if (dtype == DType::f32) std::memcpy(to, &single, 4);
    if (dtype == DType::f16) std::memcpy(to, &half, 2);
    if (dtype == DType::bf16) std::memcpy(to, &brain, 2);
  }
  return result;
}

}  // namespace gradcheck::reference
