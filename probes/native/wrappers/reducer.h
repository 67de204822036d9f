// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "model/scenario.h"
#include "probes/native/fabric/group.h"
#include "probes/native/models/model_tensor.h"

namespace gradcheck::native {

// The reducer with its two flags in sight: whether the next backward will be reduced, and whether
// the last one was not finished.
struct PeekReducer : c10d::Reducer {
  using c10d::Reducer::Reducer;
  bool armed() const { return expect_autograd_hooks_; }
  bool needs_finalize() const { return require_finalize_; }
};

// Reducer and Logger, made as _ddp_init_helper makes them: bucket limits, reversed buckets, logger,
// static graph; then the communication hook.
struct ReducerPair {
  std::shared_ptr<PeekReducer> reducer;
  std::shared_ptr<c10d::Logger> logger;
};

ReducerPair make_reducer(const ModelTensors& parameters, const Group& group,
                         const WrapperOptions& options);

// DDP's sink under its outputs: keeps undefined gradients undefined, and in a static graph's first
// backward delays all reductions to the end of it. `delayed` is set when it has done so.
at::Tensor sink(const at::Tensor& output, const std::shared_ptr<PeekReducer>& reducer,
                bool static_graph, const std::shared_ptr<bool>& delayed);

}  // namespace gradcheck::native
