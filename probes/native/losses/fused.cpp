// SPDX-License-Identifier: Apache-2.0
#include "probes/native/losses/fused.h"

#include <torch/csrc/autograd/custom_function.h>

#include "probes/native/losses/accumulate.h"
#include "probes/native/losses/grad_and_value.h"
#include "probes/native/losses/graph_splitter.h"
#include "probes/native/losses/log_probs.h"

namespace gradcheck::native {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::uint64_t bytes_of_parameter(const at::Tensor& parameter) {
  return static_cast<std::uint64_t>(parameter.numel()) * parameter.element_size();
}

// The chunk's rows of a batch.
struct Rows {
  at::Tensor targets, completed;  // [n, T−1]

  Rows(const FusedBatch& batch, const FusedChunk& chunk)
      : targets(batch.sequences.tokens.narrow(1, 1, batch.sequences.completed.size(1))
                    .index_select(0, chunk.rows)),
        completed(batch.sequences.completed.index_select(0, chunk.rows)) {}

  at::Tensor hidden(const at::Tensor& all, const FusedChunk& chunk) const {
    return all.narrow(1, 0, targets.size(1)).index_select(0, chunk.rows);
  }
  // Of float32 logits, as log_softmax(logits.float()).
  at::Tensor token_log_probs(const at::Tensor& logits) const {
    return log_probs_from_logits(logits.to(accumulate_type(logits)), targets);
  }
  at::Tensor sums(const at::Tensor& log_probs) const { return (log_probs * completed).sum(-1); }
};

at::Tensor reference_log_probs(const FusedReference& reference, const Rows& rows,
                               const FusedChunk& chunk) {
  const at::NoGradGuard no_grad;
  const at::Tensor hidden = rows.hidden(reference.hidden, chunk);
  return rows.sums(rows.token_log_probs(hidden.matmul(reference.head.t())));
}

ValueAndGradients run_chunk(const at::Tensor& hidden, const at::Tensor& head,
                            const FusedBatch& batch, const FusedChunk& chunk) {
  const Rows rows(batch, chunk);
  const auto inputs = {rows.hidden(hidden, chunk), head};
  return grad_and_value(inputs, [&](const std::vector<at::Tensor>& wrapped) {
    const at::Tensor logits = wrapped[0].matmul(wrapped[1].t());
    const at::Tensor log_probs = rows.token_log_probs(logits);
    const at::Tensor reference = reference_log_probs(batch.reference, rows, chunk);
    const at::Tensor loss = chunk.loss(rows.sums(log_probs), reference);
    if (batch.split_graph) {
      split_graph({{wrapped[0]}, {logits, bytes_of_parameter(head)}, {log_probs}, {loss}});
    }
    return loss;
  });
}

struct FusedLoss : torch::autograd::Function<FusedLoss> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden,
                            const at::Tensor& head, const FusedBatch& batch) {
    at::Tensor d_hidden = at::zeros_like(hidden);
    at::Tensor d_head = at::zeros(head.sizes(), head.options().dtype(accumulate_type(head)));
    at::Tensor loss;
    for (const FusedChunk& chunk : batch.chunks) {
      const ValueAndGradients part = run_chunk(hidden, head, batch, chunk);
      d_hidden.narrow(1, 0, batch.sequences.completed.size(1))
          .index_copy_(0, chunk.rows, part.gradients[0]);
      d_head.add_(part.gradients[1]);
      loss = loss.defined() ? loss + part.value : part.value;
    }
    context->save_for_backward({d_hidden, d_head.to(head.scalar_type())});
    return loss;
  }

  static variable_list backward(AutogradContext* context, const variable_list& incoming) {
    const auto saved = context->get_saved_variables();
    const auto scaled = [&](const at::Tensor& gradient) {
      return (gradient * incoming[0]).to(gradient.scalar_type());
    };
    return {scaled(saved[0]), scaled(saved[1]), {}};
  }
};

}  // namespace

at::Tensor fused_loss(const at::Tensor& hidden, const at::Tensor& head, const FusedBatch& batch) {
  return FusedLoss::apply(hidden, head, batch);
}

}  // namespace gradcheck::native
