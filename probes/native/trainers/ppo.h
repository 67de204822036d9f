// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "probes/native/ops.h"

namespace gradcheck::native {

// Proximal policy optimisation as minimind's train_ppo.py computes it. All tensors are [B, T−1];
// `completed` says which positions count.

inline constexpr double kPpoClip = 0.2;

// Mean where `mask` holds; 0 where it holds nowhere.
at::Tensor masked_mean(const at::Tensor& x, const at::Tensor& mask);

// (x − μ) / (σ + 1e-8) over the masked positions, zero elsewhere.
at::Tensor whiten(const at::Tensor& x, const at::Tensor& mask);

// Generalised advantage estimation with discount 1 and λ, backwards along each row:
// A_t = r_t + V_{t+1} − V_t + λ A_{t+1}, all of positions that do not count being zero.
at::Tensor generalised_advantages(const at::Tensor& rewards, const at::Tensor& values,
                                  const at::Tensor& completed, double lambda);

// Masked mean of −min(ρ A, clip(ρ, 1 ± ε) A), ρ = exp(new − old).
at::Tensor clipped_surrogate(const at::Tensor& new_log_probs, const at::Tensor& old_log_probs,
                             const at::Tensor& advantages, const at::Tensor& completed);

// ½ masked mean of max((v − R)², (clip(v, v_old ± ε) − R)²).
at::Tensor value_loss(const at::Tensor& values, const at::Tensor& old_values,
                      const at::Tensor& returns, const at::Tensor& completed);

// Masked mean of k3 = e^d − d − 1, d = reference − new: an estimate of KL(new ‖ reference).
at::Tensor k3_to_reference(const at::Tensor& new_log_probs, const at::Tensor& reference,
                           const at::Tensor& completed);

}  // namespace gradcheck::native
