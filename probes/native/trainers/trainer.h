// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>

#include "model/control.h"
#include "probes/native/fabric/fabric.h"
#include "probes/native/journal.h"
#include "probes/native/wrappers/policy.h"

namespace gradcheck::native {

// What a trainer works with; all of it outlives the trainer.
struct Bench {
  const RunRecord& run;
  Journal& journal;
  Policy& policy;
  const Fabric* fabric;  // null: one rank and no wrapper, no collective at all
};

// The loss of one micro-batch, before loss scale and accumulation. Takes step and micro.
using MicroLoss = std::function<at::Tensor(std::int64_t step, std::int64_t micro)>;

// The trainer that the program names, with its reference model. Errors: std::invalid_argument.
MicroLoss make_trainer(const Bench& bench);

}  // namespace gradcheck::native
