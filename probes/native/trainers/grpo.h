// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "model/scenario.h"
#include "probes/native/ops.h"

namespace gradcheck::native {

// Group relative policy optimisation and its relatives, as GRPOTrainer in huggingface/trl and
// minimind's train_grpo.py compute them.

struct GrpoBatch {
  at::Tensor policy;  // [B, T−1] log-probs, carries the gradient
  at::Tensor old;     // of the policy that generated the completions
  at::Tensor reference;
  at::Tensor completed;      // [B, T−1] bool
  at::Tensor advantages;     // [B]
  at::Tensor token_share;    // completion tokens of all ranks ÷ ranks
  std::int64_t longest = 0;  // completion tokens a row may have
};

// (R − μ) / (σ + 1e-4) within each group of `group` rows; zero where a group has one reward.
at::Tensor group_advantages(const at::Tensor& rewards, std::int64_t group);

// Σ weight · objective. The term "k3" is no loss of its own: its weight is β, and β (e^d − d − 1),
// d = reference − policy, is added to each token of the others. Errors: std::invalid_argument for
// a name that is no GRPO objective (model/native_parts.h).
at::Tensor grpo_loss(const std::vector<Objective>& objectives, const GrpoBatch& batch);

}  // namespace gradcheck::native
