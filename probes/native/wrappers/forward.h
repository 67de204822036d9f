// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "probes/native/losses/fused.h"
#include "probes/native/models/decoder.h"
#include "probes/native/trainers/batch.h"

namespace gradcheck::native {

// What a loss may ask of a model. It knows nothing of the way the program takes to it: past a
// wrapper, inside its forward, or through it.
class Forward {
 public:
  using Features = std::function<at::Tensor(const at::Tensor& tokens)>;

  // The model itself, nothing around it.
  Forward(const Decoder& model, std::string loss);
  // `logits` stays empty where log-probs are computed from hidden states and head.
  Forward(const Decoder& model, std::string loss, Features hidden, Features logits, Features values,
          bool split_graph);

  at::Tensor token_log_probs(const Sequences& sequences) const;  // [B, T−1]
  // The sum (not the mean) over each completion's tokens, [B].
  at::Tensor sequence_log_probs(const Sequences& sequences) const;
  at::Tensor logits(const at::Tensor& tokens) const;  // [B, T, V]
  at::Tensor values(const at::Tensor& tokens) const;  // [B, T], a critic's
  // Sum of the chunks' losses, their gradients computed on the way (losses/fused.h).
  at::Tensor fused(const Sequences& sequences, FusedReference reference,
                   std::vector<FusedChunk> chunks) const;

 private:
  const Decoder& model_;
  std::string loss_;
  Features hidden_;
  Features logits_;
  Features values_;
  bool split_graph_ = false;
};

}  // namespace gradcheck::native
