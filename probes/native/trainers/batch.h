// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "probes/native/ops.h"

namespace gradcheck::native {

// Sequences as a collator makes them: a prompt, then a completion of its own length, then padding.
struct Sequences {
  at::Tensor tokens;     // [B, T] int64
  at::Tensor completed;  // [B, T-1] bool: the token that follows position t belongs to a completion
};

// A batch of unpaired preferences. `kl` holds the completions shifted by one inside the batch
// (prompt i with completion i−1), from which the KL term is estimated.
struct PreferenceBatch {
  Sequences sequences;
  Sequences kl;
  at::Tensor desirable;  // [B] bool; both kinds occur in every batch
};

// Where a batch comes from. The data are a function of these numbers only; LibTorch's generators
// are neither read nor moved.
struct BatchKey {
  std::uint64_t seed = 0;
  int rank = 0;
  std::int64_t step = 0;
  std::int64_t micro = 0;
};

// Requires: size ≥ 2, vocabulary ≥ 2.
PreferenceBatch make_preference_batch(const BatchKey& key, std::int64_t size,
                                      std::int64_t vocabulary);

// XXH3-128 over all of a batch's tensors, as hexadecimal digits.
std::string digest_of(const PreferenceBatch& batch);

}  // namespace gradcheck::native
