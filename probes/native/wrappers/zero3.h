// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "probes/native/wrappers/sharded_model.h"

namespace gradcheck::native {

// DeepSpeed's ZeRO stage 3, modelled on ShardedModel. Kept: every parameter is flattened and cut by
// itself, padded to equal partitions; outside of the engine's forward it has no elements (numel 0),
// so that a loss past the engine meets LibTorch's own errors about sizes, and so does a head taken
// by attribute after the forward; the owned partition has the gradient. One unit: partitions of
// all parameters are gathered in one collective. Left out: hooks on each submodule, offloading.
std::unique_ptr<ShardedModel> make_zero3(const std::string& model, const ModelTensors& parameters,
                                         const Fabric& fabric, const WrapperOptions& options,
                                         Journal& journal);

}  // namespace gradcheck::native
