// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "probes/native/models/model_tensor.h"

namespace gradcheck::native {

// LibTorch's AdamW with its defaults but for the learning rate: 1e-2, so that the first step moves
// bfloat16 norm weights too, which lie around one and have a spacing of 2^-7 there.
class AdamW {
 public:
  explicit AdamW(const ModelTensors& parameters);
  ~AdamW();
  AdamW(const AdamW&) = delete;
  AdamW& operator=(const AdamW&) = delete;

  void step();
  void clear_gradients();  // to undefined, as zero_grad(set_to_none=True)

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gradcheck::native
