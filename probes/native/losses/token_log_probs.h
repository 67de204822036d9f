// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "probes/native/losses/log_probs.h"
#include "probes/native/trainers/batch.h"

namespace gradcheck::native {

// log p of each completion token, at the position before it: [B, T−1], zero elsewhere.

// By the form that `loss` names (model/native_parts.h); "fused" is dense where it needs no
// gradient. Only completion positions reach it. hidden [B, T, H].
at::Tensor token_log_probs(std::string_view loss, const at::Tensor& hidden, const at::Tensor& head,
                           const Sequences& sequences, const LogProbOptions& options = {});

// From logits [B, T, V] that came through a wrapper.
at::Tensor token_log_probs_from_logits(const at::Tensor& logits, const Sequences& sequences,
                                       const LogProbOptions& options = {});

}  // namespace gradcheck::native
