// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>

#include "model/dtype.h"

namespace gradcheck {

// What can be told about elements at the speed of reading them: enough to know whether a tensor is
// zero everywhere and whether anybody must count what is not finite in it.
struct Scan {
  bool nonzero = false;    // some element is neither +0 nor −0; of types without values: some bit
  bool nonfinite = false;  // some element is NaN or infinite; never of types without values
  friend bool operator==(const Scan&, const Scan&) = default;
};

// Adds what `elements` show to `scan`. Cut anywhere between elements, in any order.
void scan_elements(DType dtype, std::span<const std::byte> elements, Scan& scan);

}  // namespace gradcheck
