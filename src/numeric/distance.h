// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/dtype.h"

namespace gradcheck {

// Widens `out.size()` elements starting at element `first` to double (exact for all measured
// types). Throws std::invalid_argument beyond the end or for a type that is not measured.
void to_double(DType dtype, std::span<const std::byte> elements, std::size_t first,
               std::span<double> out);

// Element-wise difference of two tensors of one measured dtype and equal size. Bits are compared,
// not values: −0 differs from +0, and a NaN equals only the NaN of its own payload.
struct Difference {
  std::uint64_t differing = 0;     // elements whose bits differ
  double max_abs = 0;              // largest |a − b| over elements finite on both sides; at most
                                   // the largest double
  std::uint64_t nonfinite = 0;     // differing elements with NaN or infinity on either side
  std::uint64_t sign_of_zero = 0;  // differing elements that are −0 against +0
  std::uint64_t nan_payload = 0;   // differing elements that are NaN on both sides
};

// Throws std::invalid_argument for unequal sizes, a cut element or a type that is not measured.
Difference difference(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace gradcheck
