// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "probes/native/trainers/trainer.h"

namespace gradcheck::native {

// TRL's KTOTrainer: log-probs of a frozen reference model, the KL term estimated on shifted
// completions and gathered over the ranks, then the policy's loss the way its path says.
// Errors: std::invalid_argument for a batch of one.
MicroLoss make_kto(const Bench& bench);

}  // namespace gradcheck::native
