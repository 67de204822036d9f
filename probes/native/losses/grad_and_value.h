// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <vector>

#include "probes/native/ops.h"

namespace gradcheck::native {

struct ValueAndGradients {
  at::Tensor value;
  std::vector<at::Tensor> gradients;  // one an input
};

// torch.func.grad_and_value over LibTorch's own functorch: `function` sees its inputs as
// TensorWrappers of a new level, which have no storage. No hook on the inputs fires, and whatever
// graph they hang on is left alone. Errors: c10::NotImplementedError where `function` asks one of
// its tensors for its storage.
ValueAndGradients grad_and_value(
    const std::vector<at::Tensor>& inputs,
    const std::function<at::Tensor(const std::vector<at::Tensor>&)>& function);

}  // namespace gradcheck::native
