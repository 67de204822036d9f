// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string_view>

#include "probes/native/models/qwen3.h"
#include "probes/native/trainers/batch.h"

namespace gradcheck::native {

// L(y) of each sequence: the sum (not the mean) of log p over its completion's tokens, [B].
using SequenceLogProbs = std::function<at::Tensor(const Sequences&)>;

// By the loss part that `loss` names, "chunked" or "dense". Only completion positions reach it.
at::Tensor sequence_log_probs(std::string_view loss, const Qwen3& model,
                              const Sequences& sequences);

// From logits [B, T, V] that came through a wrapper.
at::Tensor sequence_log_probs_from_logits(const at::Tensor& logits, const Sequences& sequences);

}  // namespace gradcheck::native
