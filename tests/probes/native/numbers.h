// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "probes/native/ops.h"

namespace gradcheck::native {

// A vector in float64.
inline at::Tensor numbers(std::initializer_list<double> values) {
  at::Tensor out = at::empty({static_cast<std::int64_t>(values.size())}, at::kDouble);
  std::copy(values.begin(), values.end(), out.mutable_data_ptr<double>());
  return out;
}

}  // namespace gradcheck::native
