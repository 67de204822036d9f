// SPDX-License-Identifier: Apache-2.0
#include <torch/csrc/autograd/custom_function.h>

#include <limits>

#include "probes/native/losses/accumulate.h"
#include "probes/native/losses/log_probs.h"

namespace gradcheck::native {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// One span of the vocabulary and which targets lie in it.
struct Tile {
  std::int64_t first = 0;
  std::int64_t size = 0;
  at::Tensor head;    // [size, H], in the hidden states' dtype
  at::Tensor logits;  // [N, size], final, accumulator dtype
  at::Tensor column;  // [N, 1] target's place in the tile, clamped into it
  at::Tensor inside;  // [N] whether the target lies in the tile
};

Tile make_tile(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets,
               std::int64_t first, const LogProbOptions& options) {
  Tile tile;
  tile.first = first;
  tile.size = std::min(options.tile, head.size(0) - first);
  tile.head = head.narrow(0, first, tile.size).to(hidden.scalar_type());
  tile.logits = final_logits(hidden.matmul(tile.head.t()), options).to(accumulate_type(hidden));
  const at::Tensor place = targets - first;
  tile.inside = place.ge(0).logical_and(place.lt(tile.size));
  tile.column = place.clamp(0, tile.size - 1).unsqueeze(-1);
  return tile;
}

// Running maximum, sum of exponentials relative to it, and target logit of N positions.
struct OnlineSums {
  at::Tensor max;
  at::Tensor sum;
  at::Tensor target;

  explicit OnlineSums(const at::Tensor& hidden) {
    const auto like = hidden.options().dtype(accumulate_type(hidden));
    max = at::full({hidden.size(0)}, -std::numeric_limits<double>::infinity(), like);
    sum = at::zeros({hidden.size(0)}, like);
    target = at::zeros({hidden.size(0)}, like);
  }
  void add(const Tile& tile) {
    const at::Tensor new_max = at::maximum(max, tile.logits.amax(-1));
    sum = sum * (max - new_max).exp() + (tile.logits - new_max.unsqueeze(-1)).exp().sum(-1);
    max = new_max;
    target = at::where(tile.inside, tile.logits.gather(1, tile.column).squeeze(1), target);
  }
  at::Tensor log_z() const { return max + sum.log(); }
};

LogProbOptions options_of(AutogradContext* context) {
  auto& data = context->saved_data;
  return {data["temperature"].toDouble(), data["softcap"].toDouble(), data["scale"].toDouble(),
          data["tile"].toInt()};
}

void keep_options(AutogradContext* context, const LogProbOptions& options) {
  auto& data = context->saved_data;
  data["temperature"] = options.temperature;
  data["softcap"] = options.softcap;
  data["scale"] = options.scale;
  data["tile"] = options.tile;
}

// d log p / d (hidden · headᵀ) of one tile, times the incoming gradient: g · (1[target] − p) ·
// slope.
at::Tensor product_gradient(const Tile& tile, const at::Tensor& log_z, const at::Tensor& incoming,
                            const LogProbOptions& options) {
  const at::Tensor g = incoming.unsqueeze(-1);
  at::Tensor gradient = (tile.logits - log_z.unsqueeze(-1)).exp().mul_(g).neg_();
  gradient.scatter_add_(1, tile.column, at::where(tile.inside, incoming, 0.0).unsqueeze(-1));
  return gradient.mul_(final_logits_slope(tile.logits, options));
}

struct ChunkedLogProbs : torch::autograd::Function<ChunkedLogProbs> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden,
                            const at::Tensor& head, const at::Tensor& targets,
                            const LogProbOptions& options) {
    OnlineSums sums(hidden);
    for (std::int64_t first = 0; first < head.size(0); first += options.tile) {
      sums.add(make_tile(hidden, head, targets, first, options));
    }
    const at::Tensor log_z = sums.log_z();
    context->save_for_backward({hidden, head, targets, log_z});
    keep_options(context, options);
    return sums.target - log_z;
  }

  static variable_list backward(AutogradContext* context, const variable_list& incoming) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &hidden = saved[0], &head = saved[1], &targets = saved[2], &log_z = saved[3];
    const LogProbOptions options = options_of(context);
    const auto like = hidden.options().dtype(accumulate_type(hidden));
    at::Tensor d_hidden = at::zeros(hidden.sizes(), like);
    at::Tensor d_head = at::zeros(head.sizes(), like);
    for (std::int64_t first = 0; first < head.size(0); first += options.tile) {
      const Tile tile = make_tile(hidden, head, targets, first, options);
      const at::Tensor d = product_gradient(tile, log_z, incoming[0], options);
      d_hidden.add_(d.matmul(tile.head.to(like.dtype())));
      d_head.narrow(0, tile.first, tile.size).copy_(d.t().matmul(hidden.to(like.dtype())));
    }
    return {d_hidden.to(hidden.scalar_type()), d_head.to(head.scalar_type()), {}, {}};
  }
};

}  // namespace

at::Tensor chunked_log_probs(const at::Tensor& hidden, const at::Tensor& head,
                             const at::Tensor& targets, const LogProbOptions& options) {
  return ChunkedLogProbs::apply(hidden, head, targets, options);
}

}  // namespace gradcheck::native
