// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/dtype.h"

namespace gradcheck {

// How far two tensors of one measured type stand apart, counted in numbers of that type that lie
// between their elements (units in the last place). −0 and +0 are no step apart, the smallest
// numbers around them two. Elements that are not finite on either side have no such distance.
inline constexpr std::array<std::uint64_t, 6> kUlpLimits = {1,   4,     16,
                                                            256, 65536, ~std::uint64_t{0}};

struct UlpDistance {
  std::array<std::uint64_t, kUlpLimits.size()> counts{};  // elements at most kUlpLimits[i] apart
  std::uint64_t largest = 0;
  std::uint64_t sign_changes = 0;  // of these: one is negative, the other positive
  std::uint64_t nonfinite = 0;     // differing elements without a distance

  void add(const UlpDistance& other);
};

// Elements with equal bits are not counted, nor are +0 and −0. Throws std::invalid_argument for
// unequal sizes, a cut element or a type that is not measured.
UlpDistance ulp_distance(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b);

// ‖a − b‖₂ and ‖b‖₂ of two tensors of as many elements, whose types may differ. Elements with equal
// values (both the same infinity included) are no distance; any other that is not finite makes
// `gap` infinite. Throws std::invalid_argument as above.
struct NormDistance {
  double gap = 0;
  double norm = 0;
};
NormDistance norm_distance(DType dtype_a, std::span<const std::byte> a, DType dtype_b,
                           std::span<const std::byte> b);

}  // namespace gradcheck
