// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/dtype.h"
#include "model/record.h"

namespace gradcheck {

// The elements of one tensor on one rank, row-major, little endian. Does not own the bytes.
struct TensorView {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

struct PayloadKey {
  std::int64_t step = 0;
  std::int64_t micro = 0;
  Stage stage = Stage::reduced;
  int rank = 0;
  std::string tensor;  // "model/name"
  friend auto operator<=>(const PayloadKey&, const PayloadKey&) = default;
};

// Elements at hand for the judge, by moment and rank. Whoever made the views keeps the memory.
using PayloadViews = std::map<PayloadKey, TensorView>;

// What the front asks of a rank at the end of a step.
struct Want {
  std::int64_t step = 0;
  std::int64_t micro = 0;
  Stage stage = Stage::reduced;
  std::vector<std::string> names;  // "model/name", most wanted first
  std::uint64_t budget_bytes = 0;
};

}  // namespace gradcheck
