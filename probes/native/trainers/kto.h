// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string_view>

#include "probes/native/ops.h"

namespace gradcheck::native {

// Kahneman-Tversky optimisation as KTOTrainer in huggingface/trl computes it.

struct KtoOptions {
  double beta = 0.1;
  double desirable_weight = 1;
  double undesirable_weight = 1;
};

// Sequence log-probs of one rank's micro-batch, each [B].
struct KtoLogProbs {
  at::Tensor policy;  // of the completions; carries the gradient
  at::Tensor reference;
  at::Tensor policy_kl;  // of the shifted completions
  at::Tensor reference_kl;
};

// max(0, mean over ranks of each rank's batch mean of policy_kl − reference_kl), detached.
// `gather` returns the value of every rank, [world_size].
at::Tensor kto_kl(const KtoLogProbs& log_probs,
                  const std::function<at::Tensor(const at::Tensor&)>& gather);

// Mean over desirable then undesirable sequences, NaN left out: w_d · (1 − σ(β (r − kl))) and
// w_u · (1 − σ(β (kl − r))), r = policy − reference. Objective "apo_zero_unpaired" is the same with
// kl zero. Requires: `objective` is one of KTO's (model/native_parts.h).
at::Tensor kto_loss(std::string_view objective, const KtoLogProbs& log_probs,
                    const at::Tensor& desirable, const at::Tensor& kl, const KtoOptions& options);

}  // namespace gradcheck::native
