// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "model/dtype.h"

namespace gradcheck {

// One stateless type per measured dtype: `Bits`, the element's bits, and `widen`, which turns them
// into the double of equal value (exact; NaN stays NaN, whatever its payload). Tensors are little
// endian and unaligned.

template <class T>
T load_bits(const std::byte* at) {
  static_assert(std::endian::native == std::endian::little);
  T bits;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

struct F64 {
  using Bits = std::uint64_t;
  static double widen(Bits bits) { return std::bit_cast<double>(bits); }
};

struct F32 {
  using Bits = std::uint32_t;
  static double widen(Bits bits) { return std::bit_cast<float>(bits); }
};

struct Bf16 {
  using Bits = std::uint16_t;
  static double widen(Bits bits) { return F32::widen(std::uint32_t{bits} << 16); }
};

struct F16 {
  using Bits = std::uint16_t;
  // The 15 low bits, moved to a double's exponent and top of its mantissa, read 2^1008 too small
  // (biases 15 and 1023); this holds for subnormals too. Infinity and NaN get the full exponent.
  static double widen(Bits bits) {
    const std::uint64_t sign = std::uint64_t{bits & 0x8000U} << 48;
    const std::uint64_t magnitude = std::uint64_t{bits & 0x7fffU} << 42;
    if ((bits & 0x7c00U) == 0x7c00U) {
      return std::bit_cast<double>(sign | 0x7ff0000000000000U | magnitude);
    }
    return std::bit_cast<double>(sign | magnitude) * 0x1p1008;
  }
};

// Calls `visit` with the type of `dtype`. Requires: is_measured(dtype).
template <class Visit>
auto visit_measured(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::f64:
      return visit(F64{});
    case DType::f16:
      return visit(F16{});
    case DType::bf16:
      return visit(Bf16{});
    default:
      return visit(F32{});
  }
}

}  // namespace gradcheck
