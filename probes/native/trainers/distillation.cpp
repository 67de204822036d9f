// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/distillation.h"

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logaddexp.h>

#include <cmath>

namespace gradcheck::native {
namespace {

// Of two log-distributions, mean over positions.
at::Tensor kl(const at::Tensor& log_p, const at::Tensor& log_q) {
  return (log_p.exp() * (log_p - log_q)).sum(-1).mean();
}

}  // namespace

at::Tensor softened_kl(const at::Tensor& student, const at::Tensor& teacher, double temperature) {
  const auto soft = [temperature](const at::Tensor& z) {
    return at::log_softmax(z / temperature, -1);
  };
  return kl(soft(teacher), soft(student)) * (temperature * temperature);
}

at::Tensor generalised_jsd(const at::Tensor& student, const at::Tensor& teacher, double beta) {
  const at::Tensor log_student = at::log_softmax(student, -1);
  const at::Tensor log_teacher = at::log_softmax(teacher, -1);
  const at::Tensor mixture =
      at::logaddexp(log_teacher + std::log(beta), log_student + std::log(1 - beta));
  return kl(log_teacher, mixture) * beta + kl(log_student, mixture) * (1 - beta);
}

}  // namespace gradcheck::native
