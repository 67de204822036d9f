// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "probes/native/ops.h"

namespace gradcheck::native {

// Distances of a student's logits from a teacher's, [N, V] each, mean over the N positions.

// T² · KL(teacher ‖ student), both softened by T: minimind's train_distillation.py.
at::Tensor softened_kl(const at::Tensor& student, const at::Tensor& teacher, double temperature);

// Generalised Jensen-Shannon divergence: β KL(teacher ‖ m) + (1 − β) KL(student ‖ m),
// m = β teacher + (1 − β) student: GKDTrainer in huggingface/trl. Requires: 0 < β < 1.
at::Tensor generalised_jsd(const at::Tensor& student, const at::Tensor& teacher, double beta);

}  // namespace gradcheck::native
