// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "model/scenario.h"
#include "probes/native/ops.h"

namespace gradcheck::native {

// Direct preference optimisation and its relatives, as DPOTrainer in huggingface/trl computes them.

struct DpoOptions {
  double beta = 0.1;
  double label_smoothing = 0;
  double discopop_tau = 0.05;
};

// Of one rank's micro-batch, each [P]: sums over completions, and how many tokens each has.
struct PairLogProbs {
  at::Tensor policy_chosen;  // these two carry the gradient
  at::Tensor policy_rejected;
  at::Tensor reference_chosen;
  at::Tensor reference_rejected;
  at::Tensor chosen_tokens;
  at::Tensor rejected_tokens;
  at::Tensor reward_mean;  // bco_pair: running mean of rewards over steps and ranks
};

// Σ weight · mean over pairs of each objective's loss. Errors: std::invalid_argument for a name
// that is no DPO objective (model/native_parts.h).
at::Tensor dpo_loss(const std::vector<Objective>& objectives, const PairLogProbs& pairs,
                    const DpoOptions& options);

// β · (policy − reference) of chosen and rejected rows, [2P], detached.
at::Tensor dpo_rewards(const PairLogProbs& pairs, const DpoOptions& options);

}  // namespace gradcheck::native
