// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "probes/native/ops.h"

namespace gradcheck::native {

// A parameter or buffer under the name that `named_parameters()` of the re-created model gives it.
// A tensor that two modules share stands in a list once, under its first name.
struct ModelTensor {
  std::string name;
  at::Tensor value;
};

using ModelTensors = std::vector<ModelTensor>;

}  // namespace gradcheck::native
