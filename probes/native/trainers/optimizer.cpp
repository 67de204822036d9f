// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/optimizer.h"

#include <torch/optim/adamw.h>

#include <vector>

namespace gradcheck::native {
namespace {

constexpr double kLearningRate = 1e-2;

}  // namespace

struct AdamW::State {
  std::vector<at::Tensor> values;
  torch::optim::AdamW optimizer;
};

AdamW::AdamW(const ModelTensors& parameters) {
  std::vector<at::Tensor> values;
  for (const ModelTensor& parameter : parameters) {
    if (parameter.value.requires_grad()) values.push_back(parameter.value);
  }
  torch::optim::AdamW optimizer(values, torch::optim::AdamWOptions(kLearningRate));
  state_.reset(new State{std::move(values), std::move(optimizer)});
}

AdamW::~AdamW() = default;

void AdamW::step() { state_->optimizer.step(); }

// Not Optimizer::zero_grad, which detaches in place and so refuses views of DDP's buckets.
void AdamW::clear_gradients() {
  for (at::Tensor& value : state_->values) value.mutable_grad().reset();
}

}  // namespace gradcheck::native
