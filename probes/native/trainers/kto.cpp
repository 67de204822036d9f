// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/kto.h"

namespace gradcheck::native {

at::Tensor kto_kl(const KtoLogProbs& log_probs,
                  const std::function<at::Tensor(const at::Tensor&)>& gather) {
  const at::Tensor own = (log_probs.policy_kl - log_probs.reference_kl).mean().detach();
  return gather(own).mean().clamp_min(0);
}

at::Tensor kto_loss(std::string_view objective, const KtoLogProbs& log_probs,
                    const at::Tensor& desirable, const at::Tensor& kl, const KtoOptions& options) {
  const at::Tensor ratio = log_probs.policy - log_probs.reference;
  const at::Tensor margin = (objective == "kto" ? ratio - kl : ratio) * options.beta;
  const at::Tensor chosen = margin.masked_select(desirable);
  const at::Tensor rejected = margin.masked_select(desirable.logical_not());
  return at::cat({(1 - chosen.sigmoid()) * options.desirable_weight,
                  (1 - rejected.neg().sigmoid()) * options.undesirable_weight})
      .nanmean();
}

}  // namespace gradcheck::native
