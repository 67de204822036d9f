// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "probes/native/trainers/trainer.h"

namespace gradcheck::native {

// minimind's train_ppo.py: clipped surrogate + 0.02 · k3 to a frozen reference + 0.5 · clipped
// value loss, actor and critic in one backward. Old log-probs and values come from the inner
// modules without gradients. The KL to the old policy is averaged over ranks; beyond kl_limit the
// loss is multiplied by zero and not skipped, so that every rank's hooks fire. With epochs, the
// later steps reuse the roll-out. Requires: a critic.
MicroLoss make_ppo(const Bench& bench);

}  // namespace gradcheck::native
