// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace gradcheck {

// XXH3-128 of a tensor's elements in row-major logical order, little endian. Comparable only
// between tensors of equal dtype and shape, which stand beside it.
struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend auto operator<=>(const Digest&, const Digest&) = default;
};

// 32 lower-case hexadecimal digits, most significant first (the canonical form of xxHash).
std::string to_hex(const Digest& digest);

inline constexpr int kSketchBuckets = 32;

// 32 doubles, linear in the tensor: sketch(a·x + y) = a·sketch(x) + sketch(y) up to rounding, and
// the expectation of ||sketch(x)||² is ||x||² (evidence.md, "The kernel").
using Sketch = std::array<double, kSketchBuckets>;

// What one pass over a tensor yields. Sums, extrema and the sketch cover finite elements only; the
// others are counted in `nan` and `inf`. With no finite element, min, max and max_abs are 0.
// In digest-only mode everything but `digest` and `n` is 0 and `measured` is false.
struct TensorStats {
  Digest digest;
  std::uint64_t n = 0;
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  std::uint64_t zeros = 0;  // −0 counts as zero
  double l1 = 0;            // Σ|x|
  double l2 = 0;            // √Σx²
  double max_abs = 0;
  double min = 0;
  double max = 0;
  Sketch sketch{};  // all zero unless has_sketch
  bool measured = false;
  bool has_sketch = false;
};

}  // namespace gradcheck
