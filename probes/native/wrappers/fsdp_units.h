// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "probes/native/models/model_tensor.h"
#include "probes/native/wrappers/gradient_shards.h"

namespace gradcheck::native {

// One unit a decoder layer and the root's for everything else (embedding, last norm, head), in the
// order in which a backward completes them: from the last layer to the first, then the root.
Units fsdp_units(const ModelTensors& parameters);

}  // namespace gradcheck::native
