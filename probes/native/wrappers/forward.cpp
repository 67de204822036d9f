// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/forward.h"

#include <ATen/ops/linear.h>

#include <utility>

#include "probes/native/losses/token_log_probs.h"

namespace gradcheck::native {

Forward::Forward(const Decoder& model, std::string loss)
    : Forward(
          model, std::move(loss), [&model](const at::Tensor& t) { return model.hidden(t); }, {},
          [&model](const at::Tensor& t) { return model.values(t); }, false) {}

Forward::Forward(const Decoder& model, std::string loss, Features hidden, Features logits,
                 Features values, bool split_graph)
    : model_(model),
      loss_(std::move(loss)),
      hidden_(std::move(hidden)),
      logits_(std::move(logits)),
      values_(std::move(values)),
      split_graph_(split_graph) {}

at::Tensor Forward::token_log_probs(const Sequences& sequences) const {
  const LogitOptions& logits = model_.config().logits;
  const LogProbOptions options{logits.temperature, logits.softcap, logits.scale};
  if (logits_) return token_log_probs_from_logits(logits_(sequences.tokens), sequences, options);
  const at::Tensor hidden = hidden_(sequences.tokens);
  return native::token_log_probs(loss_, hidden, model_.head(), sequences, options);
}

at::Tensor Forward::sequence_log_probs(const Sequences& sequences) const {
  return token_log_probs(sequences).sum(-1);
}

at::Tensor Forward::logits(const at::Tensor& tokens) const {
  return logits_ ? logits_(tokens) : at::linear(hidden_(tokens), model_.head());
}

at::Tensor Forward::values(const at::Tensor& tokens) const { return values_(tokens); }

at::Tensor Forward::fused(const Sequences& sequences, FusedReference reference,
                          std::vector<FusedChunk> chunks) const {
  const at::Tensor hidden = hidden_(sequences.tokens);
  return fused_loss(hidden, model_.head(),
                    {sequences, std::move(reference), std::move(chunks), split_graph_});
}

}  // namespace gradcheck::native
