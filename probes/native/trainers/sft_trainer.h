// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "probes/native/trainers/trainer.h"

namespace gradcheck::native {

// Next-token cross-entropy over completion tokens, as TRL's SFTTrainer and minimind's
// train_full_sft.py: the mean over this rank's tokens, or with count_items the sum ÷ the tokens of
// all ranks · their number, which DDP's mean over ranks turns into the mean over all tokens. A
// rank without a token gives zero times its logits, so that every hook fires.
// A mixture of experts adds its balancing term.
MicroLoss make_sft(const Bench& bench);

}  // namespace gradcheck::native
