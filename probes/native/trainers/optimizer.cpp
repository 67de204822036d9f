// SPDX-License-Identifier: Apache-2.0
#include "native/trainers/optimizer.h"

#include <torch/optim/adamw.h>

#include <vector>

namespace gradcheck::native {

struct AdamW::State {
  torch::optim::AdamW optimizer;
};

AdamW::AdamW(const ModelTensors& parameters) {
  std::vector<at::Tensor> values;
  for (const ModelTensor& parameter : parameters) values.push_back(parameter.value);
  state_.reset(new State{torch::optim::AdamW(std::move(values), torch::optim::AdamWOptions())});
}

AdamW::~AdamW() = default;

void AdamW::step() { state_->optimizer.step(); }
void AdamW::clear_gradients() { state_->optimizer.zero_grad(/*set_to_none=*/true); }

}  // namespace gradcheck::native
