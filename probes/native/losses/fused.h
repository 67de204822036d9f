// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <vector>

#include "probes/native/trainers/batch.h"

namespace gradcheck::native {

// Rows of a batch whose loss stands alone: a pair, or one sequence.
struct FusedChunk {
  at::Tensor rows;  // [n] int64
  // Takes the rows' sequence log-probs [n] by the model and by its reference, returns the chunk's
  // share of the loss.
  std::function<at::Tensor(const at::Tensor& policy, const at::Tensor& reference)> loss;
};

// The reference model's half of the loss: its hidden states [B, T, H] and head [V, H].
struct FusedReference {
  at::Tensor hidden;
  at::Tensor head;
};

struct FusedBatch {
  Sequences sequences;
  FusedReference reference;
  std::vector<FusedChunk> chunks;
  bool split_graph = false;  // compiled inside a wrapper's forward, with the splitter on
};

// Sum of the chunks' losses, as the fused linear preference losses of linkedin/Liger-Kernel compute
// it: value and gradients with respect to hidden states and head come from functorch chunk by chunk
// while the forward runs; backward only scales them. The reference's log-probs are computed in the
// same chunks, without gradients. Kept: chunks, detached inputs, float32 logits,
// accumulation. Left out: torch.compile but for what its graph splitter does (graph_splitter.h).
// hidden [B, T, H], head [V, H].
at::Tensor fused_loss(const at::Tensor& hidden, const at::Tensor& head, const FusedBatch& batch);

}  // namespace gradcheck::native
