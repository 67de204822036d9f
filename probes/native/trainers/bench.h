// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/control.h"
#include "probes/native/fabric/fabric.h"
#include "probes/native/journal.h"
#include "probes/native/trainers/batch.h"
#include "probes/native/wrappers/policy.h"

namespace gradcheck::native {

// What a trainer works with; all of it outlives the trainer.
struct Bench {
  const RunRecord& run;
  Journal& journal;
  Policy& policy;
  Policy* critic;        // null: the program has none
  const Fabric* fabric;  // null: one rank and no wrapper, no collective at all
};

// Which data a micro-step of this rank has.
BatchKey key_of(const RunRecord& run, std::int64_t step, std::int64_t micro);

// How many of the model's entries batches are drawn from.
std::int64_t vocabulary(const Bench& bench);

// Records that a batch with this digest has come.
void announce(const Bench& bench, std::string digest);

// One value of every rank, [world_size].
at::Tensor gather_from(const Bench& bench, const at::Tensor& own);

// A frozen copy of the policy, with noise on it unless the program says otherwise: the two must
// differ, or every margin is zero at step 0.
Decoder make_reference(const Bench& bench);

// The reference model's sequence log-probs, without gradients: [B].
at::Tensor reference_log_probs(const Bench& bench, const Decoder& reference,
                               const Sequences& sequences);

// The program's objectives, or the trainer's own one.
std::vector<Objective> objectives_of(const NativeProgram& program);

}  // namespace gradcheck::native
