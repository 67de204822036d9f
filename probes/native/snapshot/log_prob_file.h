// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "model/control.h"
#include "probes/native/journal.h"
#include "probes/native/ops.h"

namespace gradcheck::native {

// Log-probs of a micro-step's tokens, [B, T] each, under the names of evidence.md. `fresh` is its
// `new`, whose gradients are left behind. Undefined where there is none; the first three are always
// there.
struct LogProbArrays {
  at::Tensor fresh;
  at::Tensor old;
  at::Tensor mask;  // bool
  at::Tensor token_ids;
  at::Tensor reference;
  at::Tensor entropy;
  at::Tensor repeat;
  at::Tensor sampled;  // `rollout`: as the sampler saw them, token by token
};

// Writes them to a file of the run at the journal's step and micro-step, and its `logprob` record.
// `updates`: optimizer steps between old and fresh.
void record_log_probs(const LogProbArrays& arrays, const std::string& source, std::int64_t updates,
                      const RunRecord& run, Journal& journal);

}  // namespace gradcheck::native
