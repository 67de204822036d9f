// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "probes/native/trainers/trainer.h"

namespace gradcheck::native {

// TRL's DPOTrainer: a batch of chosen rows, then rejected rows; log-probs of a frozen reference
// model; then the policy's loss, the way its path says. With the fused loss each pair is a chunk,
// as in linkedin/Liger-Kernel.
MicroLoss make_dpo(const Bench& bench);

}  // namespace gradcheck::native
