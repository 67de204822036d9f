// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "model/dtype.h"
#include "model/errors.h"

namespace gradcheck {

// Bytes of an array's elements. Errors: InfrastructureError where 64 bits cannot count them.
inline std::uint64_t byte_count(DType dtype, const std::vector<std::int64_t>& shape) {
  std::uint64_t bytes = size_of(dtype);
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) {
      throw InfrastructureError("header: shape is too large");
    }
  }
  return bytes;
}

}  // namespace gradcheck
