// SPDX-License-Identifier: Apache-2.0
#include "numeric/ulps.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "numeric/distance.h"
#include "numeric/widen.h"

namespace gradcheck {
namespace {

// Equal stretches are skipped with memcmp; a multiple of every element's size.
constexpr std::size_t kStretchBytes = 4096;
constexpr std::size_t kChunk = 4096;  // elements widened at a time

void require_alike(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b) {
  const bool whole = is_measured(dtype) && a.size() % size_of(dtype) == 0;
  if (!whole || a.size() != b.size()) {
    throw std::invalid_argument("two tensors of equal size and a type with values are needed");
  }
}

// Numbers in ascending order get ascending integers: magnitudes as they are, negative ones below
// zero. The range of 64 bits holds twice the largest magnitude.
template <class Bits>
struct Place {
  static constexpr Bits kSign = Bits{1} << (sizeof(Bits) * 8 - 1);
  bool negative = false;
  std::uint64_t magnitude = 0;

  explicit Place(Bits bits)
      : negative((bits & kSign) != 0), magnitude(static_cast<Bits>(bits & ~kSign)) {}
};

template <class Bits>
void add_pair(UlpDistance& result, Bits bits_a, Bits bits_b) {
  const Place<Bits> a(bits_a), b(bits_b);
  const bool apart = a.negative != b.negative;
  const std::uint64_t ulps =
      apart ? a.magnitude + b.magnitude
            : std::max(a.magnitude, b.magnitude) - std::min(a.magnitude, b.magnitude);
  if (ulps == 0) return;
  const auto* limit = std::lower_bound(kUlpLimits.begin(), kUlpLimits.end(), ulps);
  ++result.counts[static_cast<std::size_t>(limit - kUlpLimits.begin())];
  result.largest = std::max(result.largest, ulps);
  result.sign_changes += apart && a.magnitude != 0 && b.magnitude != 0;
}

template <class Type>
void add_stretch(UlpDistance& result, const std::byte* a, const std::byte* b, std::size_t bytes) {
  using Bits = typename Type::Bits;
  for (std::size_t at = 0; at < bytes; at += sizeof(Bits)) {
    const auto bits_a = load_bits<Bits>(a + at);
    const auto bits_b = load_bits<Bits>(b + at);
    if (bits_a == bits_b) continue;
    const bool finite = std::isfinite(Type::widen(bits_a)) && std::isfinite(Type::widen(bits_b));
    finite ? add_pair(result, bits_a, bits_b) : static_cast<void>(++result.nonfinite);
  }
}

double gap_of(double a, double b) {
  if (a == b) return 0;
  return std::isfinite(a) && std::isfinite(b) ? a - b : std::numeric_limits<double>::infinity();
}

}  // namespace

void UlpDistance::add(const UlpDistance& other) {
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  largest = std::max(largest, other.largest);
  sign_changes += other.sign_changes;
  nonfinite += other.nonfinite;
}

UlpDistance ulp_distance(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b) {
  require_alike(dtype, a, b);
  UlpDistance result;
  visit_measured(dtype, [&](auto type) {
    for (std::size_t at = 0; at < a.size(); at += kStretchBytes) {
      const std::size_t bytes = std::min(kStretchBytes, a.size() - at);
      if (std::memcmp(a.data() + at, b.data() + at, bytes) == 0) continue;
      add_stretch<decltype(type)>(result, a.data() + at, b.data() + at, bytes);
    }
  });
  return result;
}

// The square root of a sum of squares that neither underflows nor overflows on the way: squares of
// numbers over the largest so far (as in BLAS's nrm2).
class RootOfSquares {
 public:
  void add(double x) {
    x = std::abs(x);
    if (x == 0) return;
    if (!std::isfinite(x)) infinite_ = true;
    if (x > largest_) {
      sum_ = 1 + sum_ * (largest_ / x) * (largest_ / x);
      largest_ = x;
    } else {
      sum_ += (x / largest_) * (x / largest_);
    }
  }
  double value() const {
    return infinite_ ? std::numeric_limits<double>::infinity() : largest_ * std::sqrt(sum_);
  }

 private:
  double largest_ = 0;
  double sum_ = 0;  // of squares over largest_²
  bool infinite_ = false;
};

NormDistance norm_distance(DType dtype_a, std::span<const std::byte> a, DType dtype_b,
                           std::span<const std::byte> b) {
  const bool measured = is_measured(dtype_a) && is_measured(dtype_b);
  if (!measured || a.size() / size_of(dtype_a) != b.size() / size_of(dtype_b)) {
    throw std::invalid_argument("two tensors of as many elements with values are needed");
  }
  const std::size_t n = a.size() / size_of(dtype_a);
  std::array<double, kChunk> left, right;
  RootOfSquares gap, norm;
  for (std::size_t first = 0; first < n; first += kChunk) {
    const std::size_t count = std::min(kChunk, n - first);
    to_double(dtype_a, a, first, std::span(left).first(count));
    to_double(dtype_b, b, first, std::span(right).first(count));
    for (std::size_t i = 0; i < count; ++i) {
      gap.add(gap_of(left[i], right[i]));
      if (std::isfinite(right[i])) norm.add(right[i]);
    }
  }
  return {gap.value(), norm.value()};
}

}  // namespace gradcheck
