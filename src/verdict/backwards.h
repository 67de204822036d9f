// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/evidence_table.h"
#include "verdict/facts.h"

namespace gradcheck {

// What should have become of a backward's gradients, from what was seen before it.
enum class Arming : std::uint8_t {
  armed,    // a forward of the wrapper armed the reduction
  no_sync,  // the wrapper's forward was told not to
  bare,     // no forward of the wrapper led to it
};

struct BackwardFacts {
  Moment moment;
  Arming arming = Arming::bare;
  const EventRecord* event = nullptr;  // belongs to the table
};

// The backwards of one model on one rank, in order. The flag that counts is the forward's
// (torch/nn/parallel/distributed.py reads require_backward_grad_sync there): of jobs the forwards
// since the last backward decide, native ranks say it with the backward.
std::vector<BackwardFacts> read_backwards(const RankEvidence& rank, std::string_view model,
                                          bool native);

}  // namespace gradcheck
