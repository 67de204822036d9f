// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "probes/native/models/decoder_tensors.h"

namespace gradcheck::native {

// SwiGLU: down(silu(gate x) · up x).
at::Tensor run_expert(const Expert& expert, const at::Tensor& x);

struct Routing {
  bool idle_first = false;  // expert 0 is never chosen
  bool touch_idle = true;   // an idle expert is added as 0 · Σ parameters
};

// minimind's mixture: softmax over the router's scores, the best expert of each token, weighted by
// its score. Left out: the auxiliary balancing loss. x [B, T, hidden].
at::Tensor mix_experts(const LayerTensors& layer, const at::Tensor& x, const Routing& routing);

}  // namespace gradcheck::native
