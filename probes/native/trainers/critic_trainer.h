// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "probes/native/trainers/trainer.h"

namespace gradcheck::native {

// The critic's half of minimind's PPO alone: the clipped value loss against returns, old values
// from the inner module without gradients.
MicroLoss make_critic(const Bench& bench);

}  // namespace gradcheck::native
