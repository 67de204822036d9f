// SPDX-License-Identifier: Apache-2.0
#include "numeric/distance.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "numeric/widen.h"

namespace gradcheck {
namespace {

// Equal stretches are skipped with memcmp, a stretch at a time; whole elements of every type.
constexpr std::size_t kStretchBytes = 4096;

void add_differing(Difference& difference, double a, double b) {
  ++difference.differing;
  if (std::isfinite(a) && std::isfinite(b)) {
    // Two finite doubles may be further apart than the largest of them; hold that at the largest.
    const double apart = std::min(std::fabs(a - b), std::numeric_limits<double>::max());
    difference.max_abs = std::max(difference.max_abs, apart);
    difference.sign_of_zero += a == 0.0 && b == 0.0;
  } else {
    ++difference.nonfinite;
    difference.nan_payload += std::isnan(a) && std::isnan(b);
  }
}

template <class Type>
void add_stretch(Difference& difference, const std::byte* a, const std::byte* b,
                 std::size_t bytes) {
  using Bits = typename Type::Bits;
  for (std::size_t at = 0; at < bytes; at += sizeof(Bits)) {
    const auto bits_a = load_bits<Bits>(a + at);
    const auto bits_b = load_bits<Bits>(b + at);
    if (bits_a != bits_b) add_differing(difference, Type::widen(bits_a), Type::widen(bits_b));
  }
}

void require_measured(DType dtype) {
  if (!is_measured(dtype)) throw std::invalid_argument("only f64, f32, f16 and bf16 have values");
}

}  // namespace

void to_double(DType dtype, std::span<const std::byte> elements, std::size_t first,
               std::span<double> out) {
  require_measured(dtype);
  const std::size_t count = elements.size() / size_of(dtype);
  if (first > count || out.size() > count - first) {
    throw std::invalid_argument("elements beyond the end of the tensor");
  }
  visit_measured(dtype, [&](auto type) {
    using Type = decltype(type);
    using Bits = typename Type::Bits;
    const std::byte* from = elements.data() + first * sizeof(Bits);
    for (double& value : out) {
      value = Type::widen(load_bits<Bits>(from));
      from += sizeof(Bits);
    }
  });
}

Difference difference(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b) {
  require_measured(dtype);
  if (a.size() != b.size() || a.size() % size_of(dtype) != 0) {
    throw std::invalid_argument("two tensors of equal size are needed");
  }
  Difference result;
  visit_measured(dtype, [&](auto type) {
    for (std::size_t at = 0; at < a.size(); at += kStretchBytes) {
      const std::size_t bytes = std::min(kStretchBytes, a.size() - at);
      if (std::memcmp(a.data() + at, b.data() + at, bytes) == 0) continue;
      add_stretch<decltype(type)>(result, a.data() + at, b.data() + at, bytes);
    }
  });
  return result;
}

}  // namespace gradcheck
