// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "probes/native/ops.h"

namespace gradcheck::native {

// log p(target) of N positions, in float32 (float64 for float64 inputs). Logits are
// z = scale · hidden · headᵀ, then softcap · tanh(z / softcap) if softcap > 0, then z /
// temperature.
struct LogProbOptions {
  double temperature = 1;
  double softcap = 0;
  double scale = 1;
  std::int64_t tile = 32;  // vocabulary entries at a time; chunked only
};

// From whole logits: hidden [N, H], head [V, H], targets [N] → [N].
at::Tensor dense_log_probs(const at::Tensor& hidden, const at::Tensor& head,
                           const at::Tensor& targets, const LogProbOptions& options = {});

// The part after the matrix product, for logits that came through a wrapper: logits [N, V].
at::Tensor log_probs_from_logits(const at::Tensor& logits, const at::Tensor& targets,
                                 const LogProbOptions& options = {});

// The same function without anything of size N × V: vocabulary tiles with an online logsumexp in
// forward, recomputed in backward from the saved logsumexp; float32 accumulators. An autograd
// function, as _ChunkedLogProbFunction in huggingface/trl, so it cannot run under functorch
// transforms.
at::Tensor chunked_log_probs(const at::Tensor& hidden, const at::Tensor& head,
                             const at::Tensor& targets, const LogProbOptions& options = {});

}  // namespace gradcheck::native
