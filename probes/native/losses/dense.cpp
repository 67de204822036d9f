// SPDX-License-Identifier: Apache-2.0
#include "probes/native/losses/accumulate.h"
#include "probes/native/losses/log_probs.h"

namespace gradcheck::native {

at::Tensor log_probs_from_logits(const at::Tensor& logits, const at::Tensor& targets,
                                 const LogProbOptions& options) {
  const at::Tensor z = final_logits(logits, options).to(accumulate_type(logits));
  const at::Tensor picked = z.gather(-1, targets.unsqueeze(-1)).squeeze(-1);
  return picked - at::logsumexp(z, -1);
}

at::Tensor dense_log_probs(const at::Tensor& hidden, const at::Tensor& head,
                           const at::Tensor& targets, const LogProbOptions& options) {
  return log_probs_from_logits(hidden.matmul(head.t()), targets, options);
}

}  // namespace gradcheck::native
