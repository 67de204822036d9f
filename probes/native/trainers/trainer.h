// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>

#include "probes/native/trainers/bench.h"

namespace gradcheck::native {

// The loss of one micro-batch, before loss scale and accumulation. Takes step and micro.
using MicroLoss = std::function<at::Tensor(std::int64_t step, std::int64_t micro)>;

// The trainer that the program names, with its reference model. Errors: std::invalid_argument.
MicroLoss make_trainer(const Bench& bench);

}  // namespace gradcheck::native
