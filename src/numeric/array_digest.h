// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/dtype.h"
#include "model/tensor_stats.h"

namespace gradcheck {

// One array of a file, its elements already digested.
struct ArrayStamp {
  std::string key;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  Digest digest;
};

// One digest for all arrays of a file: XXH3-128 of the lines "KEY DTYPE [SHAPE] DIGEST\n" in
// ascending order, "new f32 [2,3] 0123…". Another key, type, shape or element gives another one.
Digest digest_of(std::span<const ArrayStamp> arrays);

}  // namespace gradcheck
