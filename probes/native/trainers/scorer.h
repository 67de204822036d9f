// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>

#include "probes/native/trainers/bench.h"

namespace gradcheck::native {

// Where a policy-gradient trainer gets completions and their log-probs, [B, T−1], from.
//
// Without `roll_out` in the program: completions as the batch has them, log-probs in the program's
// form of the loss, nothing recorded. With it completions are sampled from the policy, old
// log-probs are made of them past the wrapper without gradients, and old and new come from whole
// logits of one shape, so that healthy ones are equal bit for bit. Kept of minimind's scripts:
// autocast around the policy's forwards and none around the reference's; evaluation mode in the
// roll-out only. Modelled: CUDA's policy that log_softmax is float32 inside autocast, by widening;
// half precision, by rounding the logits.
class Scorer {
 public:
  explicit Scorer(const Bench& bench);

  Sequences complete(const Sequences& batch);
  at::Tensor old(const Sequences& batch) const;
  at::Tensor reference(const Decoder& model, const Sequences& batch) const;
  // Of the update, with gradients; remembers what it made.
  at::Tensor fresh(const Forward& policy, const Sequences& batch);
  // Hands over what fresh() made last, beside what it is compared with, and a repeat of its
  // forward. `updates`: optimizer steps since `old` was made.
  void record(const Sequences& batch, const at::Tensor& old, const at::Tensor& reference,
              std::int64_t updates);

  // Whether the program makes this mistake on purpose.
  bool makes_mistake(std::string_view name) const;

 private:
  struct Made {
    at::Tensor log_probs;
    at::Tensor entropy;  // of the distribution, without gradients
  };
  Made make(const Forward& forward, const Sequences& batch) const;  // as the update does
  at::Tensor logits(const Forward& forward, const at::Tensor& tokens) const;
  at::Tensor scores(const at::Tensor& logits, double temperature) const;
  at::Tensor whole_logits(const Forward& forward, const Sequences& batch) const;
  at::Tensor packed_logits(const Forward& forward, const Sequences& batch) const;
  at::Tensor old_scores(const Sequences& batch) const;
  double update_temperature() const;
  BatchKey here() const;
  void seed_dropout(std::int64_t purpose) const;
  void debug_log_ratio(const at::Tensor& difference, const Sequences& batch) const;

  Bench bench_;
  std::optional<RollOut> roll_out_;
  Made made_;
  at::Tensor sampled_;  // log-probs as the sampler saw them, of the last roll-out
};

}  // namespace gradcheck::native
