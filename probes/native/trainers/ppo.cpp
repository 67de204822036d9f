// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/ppo.h"

#include <ATen/ops/minimum.h>

namespace gradcheck::native {

at::Tensor masked_mean(const at::Tensor& x, const at::Tensor& mask) {
  return (x * mask).sum() / mask.sum().clamp_min(1);
}

at::Tensor whiten(const at::Tensor& x, const at::Tensor& mask) {
  const at::Tensor centred = x - masked_mean(x, mask);
  const at::Tensor spread = masked_mean(centred.square(), mask).sqrt();
  return centred / (spread + 1e-8) * mask;
}

at::Tensor generalised_advantages(const at::Tensor& rewards, const at::Tensor& values,
                                  const at::Tensor& completed, double lambda) {
  const at::Tensor counted = completed.to(values.scalar_type());
  const at::Tensor known = values * counted;
  at::Tensor advantages = at::zeros_like(values);
  at::Tensor next_value = at::zeros_like(values.select(1, 0));
  at::Tensor next_advantage = next_value;
  for (std::int64_t t = values.size(1) - 1; t >= 0; --t) {
    const at::Tensor delta = rewards.select(1, t) + next_value - known.select(1, t);
    next_advantage = (delta + next_advantage * lambda) * counted.select(1, t);
    next_value = known.select(1, t);
    advantages.select(1, t).copy_(next_advantage);
  }
  return advantages;
}

at::Tensor clipped_surrogate(const at::Tensor& new_log_probs, const at::Tensor& old_log_probs,
                             const at::Tensor& advantages, const at::Tensor& completed) {
  const at::Tensor ratio = (new_log_probs - old_log_probs).exp();
  const at::Tensor clipped = ratio.clamp(1 - kPpoClip, 1 + kPpoClip);
  return masked_mean(-at::minimum(ratio * advantages, clipped * advantages), completed);
}

at::Tensor value_loss(const at::Tensor& values, const at::Tensor& old_values,
                      const at::Tensor& returns, const at::Tensor& completed) {
  const at::Tensor near = old_values + (values - old_values).clamp(-kPpoClip, kPpoClip);
  const at::Tensor worse = at::maximum((values - returns).square(), (near - returns).square());
  return masked_mean(worse, completed) * 0.5;
}

at::Tensor k3_to_reference(const at::Tensor& new_log_probs, const at::Tensor& reference,
                           const at::Tensor& completed) {
  const at::Tensor d = reference - new_log_probs;
  return masked_mean(d.exp() - d - 1, completed);
}

}  // namespace gradcheck::native
