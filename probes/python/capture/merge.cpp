// SPDX-License-Identifier: Apache-2.0
#include "probes/python/capture/merge.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "model/dtype.h"
#include "numeric/kernel.h"

namespace gradcheck::capture {
namespace {

void put(std::span<std::byte, 8> to, std::uint64_t half) {
  for (std::byte& byte : to) {
    byte = static_cast<std::byte>(half >> 56);
    half <<= 8;
  }
}

Digest digest_of(const Digest& a, const Digest& b) {
  std::array<std::byte, 32> both;
  const std::span<std::byte, 32> bytes(both);
  put(bytes.subspan<0, 8>(), a.high);
  put(bytes.subspan<8, 8>(), a.low);
  put(bytes.subspan<16, 8>(), b.high);
  put(bytes.subspan<24, 8>(), b.low);
  return measure(DType::u8, both, KernelMode::digest_only).digest;
}

// Records hold finite numbers only, as the kernel's do.
double bounded_sum(double a, double b) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  return std::clamp(a + b, -kLargest, kLargest);
}

// Zeros of both: an element that is zero in neither count could still be none, so that two halves
// of zeros do not make a zero tensor.
std::uint64_t common(std::uint64_t a, std::uint64_t b, std::uint64_t n) {
  return a + b > n ? a + b - n : 0;
}

void add_sketch(TensorStats& sum, const TensorStats& other) {
  sum.has_sketch = sum.has_sketch && other.has_sketch;
  for (std::size_t i = 0; i < sum.sketch.size(); ++i) {
    sum.sketch[i] += other.sketch[i];
    sum.has_sketch = sum.has_sketch && std::isfinite(sum.sketch[i]);
  }
  if (!sum.has_sketch) sum.sketch = {};
}

}  // namespace

TensorStats merged(const TensorStats& a, const TensorStats& b) {
  TensorStats sum = a;
  sum.digest = digest_of(a.digest, b.digest);
  sum.measured = a.measured && b.measured;
  if (!sum.measured) return sum;
  sum.nan = std::min(a.nan + b.nan, a.n);
  sum.inf = std::min(a.inf + b.inf, a.n - sum.nan);
  sum.zeros = common(a.zeros, b.zeros, a.n);
  sum.l1 = bounded_sum(a.l1, b.l1);
  sum.l2 = bounded_sum(a.l2, b.l2);
  sum.max_abs = bounded_sum(a.max_abs, b.max_abs);
  sum.min = bounded_sum(a.min, b.min);
  sum.max = bounded_sum(a.max, b.max);
  add_sketch(sum, b);
  return sum;
}

}  // namespace gradcheck::capture
