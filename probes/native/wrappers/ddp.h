// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "model/scenario.h"
#include "probes/native/fabric/fabric.h"
#include "probes/native/journal.h"
#include "probes/native/models/model_tensor.h"

namespace gradcheck::native {

// DistributedDataParallel on LibTorch's own c10d::Reducer and Logger, in the order of operations of
// torch/nn/parallel/distributed.py (2.13). Records what it declares when it is made, and each
// forward and buffer broadcast, under the model's name. The tensors stay the model's; the reducer's
// hooks sit on their gradient accumulators as long as this object lives.
class Ddp {
 public:
  // Verifies shapes across ranks and broadcasts parameters (and buffers, if they are broadcast)
  // from rank 0, then builds the reducer.
  Ddp(std::string model, const ModelTensors& parameters, const ModelTensors& buffers,
      const Fabric& fabric, const WrapperOptions& options, Journal& journal);
  ~Ddp();
  Ddp(const Ddp&) = delete;
  Ddp& operator=(const Ddp&) = delete;

  // Runs `body` between the wrapper's work before and after a forward; with gradients enabled and
  // outside no_sync this arms the reducer for the next backward.
  at::Tensor forward(const std::function<at::Tensor()>& body);

  // As Python's no_sync(): a forward inside it leaves its backward unreduced.
  void set_no_sync(bool no_sync);
  bool no_sync() const;

  bool inside_forward() const;  // a body runs now
  bool armed() const;           // the next backward will be reduced
  // Records the reducer's state. A backward that did not reach every parameter raises nothing here:
  // as in Python, the next forward does.
  void record_backward();

 private:
  struct State;
  void before_forward();
  at::Tensor after_forward(const at::Tensor& output);
  void broadcast_buffers();

  std::unique_ptr<State> state_;
};

}  // namespace gradcheck::native
