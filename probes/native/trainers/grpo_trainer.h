// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "probes/native/trainers/trainer.h"

namespace gradcheck::native {

// TRL's GRPOTrainer: groups of completions of one prompt, rewards turned into advantages within
// each group, old log-probs from the inner module without gradients, then the policy's loss the
// way its path says. With epochs, the later steps reuse the data and the old log-probs.
MicroLoss make_grpo(const Bench& bench);

// minimind's train_agent.py: the same over conversations of several turns, in which the tokens of
// tools are masked. A rank whose rows are all empty gives zero times its log-probs, so that every
// hook fires.
MicroLoss make_agent(const Bench& bench);

}  // namespace gradcheck::native
