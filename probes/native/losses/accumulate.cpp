// SPDX-License-Identifier: Apache-2.0
#include "probes/native/losses/accumulate.h"

namespace gradcheck::native {

at::ScalarType accumulate_type(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

at::Tensor final_logits(const at::Tensor& product, const LogProbOptions& options) {
  at::Tensor z = options.scale == 1 ? product : product * options.scale;
  if (options.softcap > 0) z = (z / options.softcap).tanh() * options.softcap;
  return options.temperature == 1 ? z : z / options.temperature;
}

at::Tensor final_logits_slope(const at::Tensor& final, const LogProbOptions& options) {
  const double outer = options.scale / options.temperature;
  if (options.softcap <= 0) return at::full_like(final, outer);
  const at::Tensor tanh = final * (options.temperature / options.softcap);
  return (1 - tanh.square()) * outer;
}

}  // namespace gradcheck::native
