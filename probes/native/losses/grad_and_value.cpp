// SPDX-License-Identifier: Apache-2.0
#include "probes/native/losses/grad_and_value.h"

#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/TensorWrapper.h>
#include <torch/csrc/autograd/autograd.h>

namespace gradcheck::native {
namespace {

namespace functorch = at::functorch;

class Level {
 public:
  Level()
      : level_(functorch::initAndPushDynamicLayer(functorch::TransformType::Grad, std::nullopt,
                                                  std::nullopt,
                                                  /*prev_grad_mode=*/at::GradMode::is_enabled())) {}
  ~Level() { functorch::popDynamicLayerAndDeleteMetadata(); }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

  std::vector<at::Tensor> wrap(const std::vector<at::Tensor>& inputs) const {
    std::vector<at::Tensor> wrapped;
    functorch::setInplaceRequiresGradAllowed(true);
    for (const at::Tensor& input : inputs) {
      wrapped.push_back(functorch::makeTensorWrapper(input, level_).requires_grad_(true));
    }
    functorch::setInplaceRequiresGradAllowed(false);
    return wrapped;
  }
  at::Tensor unwrap(const at::Tensor& tensor) const {
    auto* wrapper = functorch::maybeGetTensorWrapper(tensor);
    return wrapper && wrapper->level() == level_ ? wrapper->value() : tensor;
  }

 private:
  std::int64_t level_;
};

}  // namespace

ValueAndGradients grad_and_value(
    const std::vector<at::Tensor>& inputs,
    const std::function<at::Tensor(const std::vector<at::Tensor>&)>& function) {
  std::vector<at::Tensor> plain;  // before the level: afterwards detach() would be part of it
  for (const at::Tensor& input : inputs) plain.push_back(input.detach());
  const Level level;
  const at::AutoGradMode with_gradients(true);
  const std::vector<at::Tensor> wrapped = level.wrap(plain);
  const at::Tensor value = function(wrapped);
  ValueAndGradients out;
  for (const at::Tensor& gradient : torch::autograd::grad({value}, wrapped)) {
    out.gradients.push_back(level.unwrap(gradient));
  }
  out.value = level.unwrap(value).detach();
  return out;
}

}  // namespace gradcheck::native
