// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "probes/native/wrappers/sharded_model.h"

namespace gradcheck::native {

// fully_shard, modelled on ShardedModel. Kept: the module is changed in place, so that the wrapper
// is the inner module (`model is unwrapped`) and only its own forward, with the root's hooks, makes
// the parameters whole; each is cut between rows of its first dimension, and outside it is those
// rows: a loss past the hooks meets weights of too few rows. One unit a decoder layer and the
// root's. Left out: DTensor. In the original it is the mixture with plain tensors that raises; here
// it is LibTorch's own check of sizes and indices, or the value is wrong.
std::unique_ptr<ShardedModel> make_fsdp2(const std::string& model, const ModelTensors& parameters,
                                         const Fabric& fabric, const WrapperOptions& options,
                                         Journal& journal);

}  // namespace gradcheck::native
