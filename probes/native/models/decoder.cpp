// SPDX-License-Identifier: Apache-2.0
#include "probes/native/models/decoder.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include "probes/native/models/experts.h"

namespace gradcheck::native {
namespace {

at::Tensor apply(const Projection& projection, const at::Tensor& x) {
  const at::Tensor y = at::linear(x, projection.weight, projection.bias);
  if (!projection.lora_a.defined()) return y;
  return y + at::linear(at::linear(x, projection.lora_a), projection.lora_b);
}

at::Tensor rotate_half(const at::Tensor& x) {
  const auto halves = x.chunk(2, -1);
  return at::cat({halves[1].neg(), halves[0]}, -1);
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  return x * cos + rotate_half(x) * sin;
}

}  // namespace

Decoder::Decoder(const DecoderConfig& config, std::uint64_t seed, at::ScalarType dtype)
    : config_(config), dtype_(dtype), tensors_(make_tensors(config, seed, dtype)) {}

void Decoder::set_idle_expert(bool idle, bool touched) {
  idle_expert_ = idle;
  touch_idle_ = touched;
}

at::Tensor Decoder::norm(const at::Tensor& x, const at::Tensor& weight) const {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor variance = wide.square().mean(-1, /*keepdim=*/true);
  return weight * (wide * at::rsqrt(variance + config_.rms_epsilon)).to(x.scalar_type());
}

at::Tensor Decoder::attention(const LayerTensors& layer, const at::Tensor& x,
                              const Rotation& rotation) const {
  const auto heads = [&](const Projection& projection, std::int64_t count) {
    return apply(projection, x).view({x.size(0), x.size(1), count, config_.head_dim});
  };
  const auto normed = [&](const at::Tensor& y, const at::Tensor& weight) {
    return weight.defined() ? norm(y, weight) : y;
  };
  const at::Tensor q = normed(heads(layer.q, config_.heads), layer.q_norm).transpose(1, 2);
  const at::Tensor k = normed(heads(layer.k, config_.kv_heads), layer.k_norm).transpose(1, 2);
  const at::Tensor v = heads(layer.v, config_.kv_heads).transpose(1, 2);
  const std::int64_t repeat = config_.heads / config_.kv_heads;
  const auto grouped = [repeat](const at::Tensor& t) { return t.repeat_interleave(repeat, 1); };
  const auto& [cos, sin] = rotation;
  const at::Tensor mixed = at::scaled_dot_product_attention(
      rotate(q, cos, sin), grouped(rotate(k, cos, sin)), grouped(v), /*attn_mask=*/{},
      /*dropout_p=*/0.0, /*is_causal=*/true);
  return apply(layer.o, mixed.transpose(1, 2).reshape({x.size(0), x.size(1), -1}));
}

at::Tensor Decoder::mlp(const LayerTensors& layer, const at::Tensor& x) const {
  if (!layer.router.defined()) return run_expert(layer.experts.front(), x);
  return mix_experts(layer, x, {idle_expert_, touch_idle_});
}

Decoder::Rotation Decoder::rotation(std::int64_t length, at::ScalarType dtype) const {
  const ModelTensors& buffers = tensors_.buffers;
  if (config_.family == Family::minimind) {
    return {buffers[0].value.narrow(0, 0, length).to(dtype),
            buffers[1].value.narrow(0, 0, length).to(dtype)};
  }
  const at::Tensor half = at::outer(at::arange(length, at::kFloat), buffers.front().value);
  const at::Tensor angles = at::cat({half, half}, -1);
  return {angles.cos().to(dtype), angles.sin().to(dtype)};
}

void Decoder::seed_dropout(std::uint64_t seed) {
  dropout_numbers_ = at::detail::createCPUGenerator(seed);
}

at::Tensor Decoder::thinned(const at::Tensor& x) const {
  if (!training_ || dropout_ == 0) return x;
  const at::Tensor kept = at::rand(x.sizes(), dropout_numbers_).ge(dropout_);
  return x * kept.to(x.scalar_type()) / (1 - dropout_);
}

at::Tensor Decoder::hidden(const at::Tensor& tokens) const {
  at::Tensor x = thinned(at::embedding(tensors_.embedding, tokens));
  const Rotation angles = rotation(tokens.size(1), x.scalar_type());
  for (const LayerTensors& layer : tensors_.layers) {
    x = x + thinned(attention(layer, norm(x, layer.input_norm), angles));
    x = x + thinned(mlp(layer, norm(x, layer.post_norm)));
  }
  return norm(x, tensors_.norm);
}

at::Tensor Decoder::logits(const at::Tensor& tokens) const {
  return at::linear(hidden(tokens), head());
}

at::Tensor Decoder::values(const at::Tensor& tokens) const {
  return apply(tensors_.value, norm(hidden(tokens), tensors_.norm)).squeeze(-1);
}

Decoder Decoder::perturbed_copy(double relative, std::uint64_t seed) const {
  const at::NoGradGuard no_grad;
  auto generator = at::detail::createCPUGenerator(seed);
  Decoder copy(config_, seed, dtype_);
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    const at::Tensor wide = parameters()[i].value.to(at::kFloat);
    const double spread = relative * wide.square().mean().sqrt().item<double>();
    const at::Tensor noise = at::randn(wide.sizes(), generator) * spread;
    at::Tensor target = copy.parameters()[i].value;
    target.requires_grad_(false).copy_(wide + noise);
  }
  for (std::size_t i = 0; i < buffers().size(); ++i) {
    copy.buffers()[i].value.copy_(buffers()[i].value);
  }
  return copy;
}

}  // namespace gradcheck::native
