// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "model/dtype.h"
#include "numeric/kernel_isa.h"

namespace gradcheck {

// The definition of the sums: any elements, any first index, NaN and infinity included. The other
// instruction sets reproduce its bits for whole blocks of finite elements and leave it the rest.
// `first` is the global index of the first element. Requires: is_measured(dtype).
void add_elements(DType dtype, Lanes& lanes, const std::byte* data, std::uint64_t first,
                  std::uint64_t count);

}  // namespace gradcheck
