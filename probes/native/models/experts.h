// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "probes/native/models/decoder_tensors.h"

namespace gradcheck::native {

// SwiGLU: down(silu(gate x) · up x).
at::Tensor run_expert(const Expert& expert, const at::Tensor& x);

struct Routing {
  std::int64_t idle = 0;   // so many experts are never chosen, expert 0 first
  bool touch_idle = true;  // an idle expert is added as 0 · Σ parameters
};

struct Mixture {
  at::Tensor output;   // [B, T, hidden]
  at::Tensor balance;  // scalar: what evens out the load of the experts
};

// minimind's mixture: softmax over the router's scores, the best expert of each token, weighted by
// its score. x [B, T, hidden].
Mixture mix_experts(const LayerTensors& layer, const at::Tensor& x, const Routing& routing);

// E · Σ_e load_e · score_e of E experts: the share of the tokens that chose expert e, which has no
// gradient, times its mean score. 1 where all is even, E where one expert takes everything.
// scores [N, E], chosen [N].
at::Tensor balance_of(const at::Tensor& scores, const at::Tensor& chosen);

}  // namespace gradcheck::native
