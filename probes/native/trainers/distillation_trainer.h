// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "probes/native/trainers/trainer.h"

namespace gradcheck::native {

// minimind's train_distillation.py: α · cross-entropy + (1 − α) · T² · KL to a frozen teacher.
MicroLoss make_distillation(const Bench& bench);

// GKDTrainer in huggingface/trl: generalised Jensen-Shannon divergence to a frozen teacher.
MicroLoss make_gkd(const Bench& bench);

}  // namespace gradcheck::native
