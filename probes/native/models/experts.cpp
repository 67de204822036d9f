// SPDX-License-Identifier: Apache-2.0
#include "probes/native/models/experts.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/silu.h>

#include <limits>

namespace gradcheck::native {
namespace {

at::Tensor zero_of(const Expert& expert) {
  return (expert.gate.sum() + expert.up.sum() + expert.down.sum()) * 0;
}

at::Tensor scores_of(const LayerTensors& layer, const at::Tensor& tokens, std::int64_t idle) {
  at::Tensor scores = at::linear(tokens, layer.router);
  if (idle > 0) {
    at::Tensor bias = at::zeros({scores.size(1)}, scores.options());
    bias.narrow(0, 0, idle).fill_(-std::numeric_limits<double>::infinity());
    scores = scores + bias;
  }
  return scores.softmax(-1);
}

}  // namespace

at::Tensor run_expert(const Expert& expert, const at::Tensor& x) {
  const at::Tensor gate = at::silu(at::linear(x, expert.gate));
  return at::linear(gate * at::linear(x, expert.up), expert.down);
}

at::Tensor balance_of(const at::Tensor& scores, const at::Tensor& chosen) {
  const at::Tensor choices = at::arange(scores.size(1), at::kLong).eq(chosen.unsqueeze(-1));
  const at::Tensor load = choices.to(scores.scalar_type()).mean(0);
  return (load * scores.mean(0)).sum() * scores.size(1);
}

Mixture mix_experts(const LayerTensors& layer, const at::Tensor& x, const Routing& routing) {
  const at::Tensor tokens = x.reshape({-1, x.size(-1)});
  const at::Tensor scores = scores_of(layer, tokens, routing.idle);
  const auto [weight, chosen] = scores.max(-1);
  at::Tensor mixed = at::zeros_like(tokens);
  for (std::size_t i = 0; i < layer.experts.size(); ++i) {
    const at::Tensor rows = chosen.eq(static_cast<std::int64_t>(i)).nonzero().squeeze(1);
    const Expert& expert = layer.experts[i];
    if (rows.numel() > 0) {
      const at::Tensor part = run_expert(expert, tokens.index_select(0, rows));
      mixed = mixed.index_add(0, rows, part * weight.index_select(0, rows).unsqueeze(-1));
    } else if (routing.touch_idle) {
      mixed = mixed + zero_of(expert);
    }
  }
  return {mixed.view_as(x), balance_of(scores, chosen)};
}

}  // namespace gradcheck::native
