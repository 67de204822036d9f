// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

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
  at::Tensor desirable;  // [B] bool; mixed labels: both kinds occur in every batch
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

Sequences make_sequences(const BatchKey& key, std::int64_t size, std::int64_t vocabulary);

// `size` completions, each `group` rows of them for one prompt.
Sequences make_groups(const BatchKey& key, std::int64_t size, std::int64_t group,
                      std::int64_t vocabulary);

// Rewards or returns: numbers between -1 and 1, others than the tokens of the same key.
at::Tensor draw_numbers(const BatchKey& key, std::int64_t size);

// A seed of its own for each purpose that numbers of the same key are drawn for.
std::uint64_t draw_seed(const BatchKey& key, std::int64_t purpose);

// Pairs of completions of one prompt: size / 2 chosen rows, then their rejected rows.
Sequences make_pairs(const BatchKey& key, std::int64_t size, std::int64_t vocabulary);

// XXH3-128 over all of a batch's tensors, as hexadecimal digits.
std::string digest_of(const std::vector<at::Tensor>& tensors);
std::string digest_of(const Sequences& sequences);
std::string digest_of(const PreferenceBatch& batch);

}  // namespace gradcheck::native
