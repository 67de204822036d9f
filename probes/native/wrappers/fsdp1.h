// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "probes/native/wrappers/sharded_model.h"

namespace gradcheck::native {

// FullyShardedDataParallel, modelled on ShardedModel. Kept: one flat parameter a unit (a decoder
// layer; the root has embedding, last norm and head), cut into equal chunks with padding at the
// end, so that a rank may own the middle of one weight and nothing of another; the wrapper's
// forward all-gathers the flat parameters, the backward reduce-scatters them; outside, a parameter
// is the flat stretch of it that lies in this rank's chunk (use_orig_params), so that a loss past
// the wrapper meets weights of one dimension and raises. Left out: the flat parameter as the leaf
// of the graph, units gathered one by one.
std::unique_ptr<ShardedModel> make_fsdp1(const std::string& model, const ModelTensors& parameters,
                                         const Fabric& fabric, const WrapperOptions& options,
                                         Journal& journal);

}  // namespace gradcheck::native
