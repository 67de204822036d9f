// SPDX-License-Identifier: Apache-2.0
#include "probes/native/models/qwen3.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>

#include <array>
#include <cmath>
#include <utility>

namespace gradcheck::native {
namespace {

// Slots of one layer, in the order of named_parameters().
enum Slot { kQ, kK, kV, kO, kQNorm, kKNorm, kGate, kUp, kDown, kInputNorm, kPostNorm, kSlots };

constexpr std::array<const char*, kSlots> kSlotNames = {
    "self_attn.q_proj.weight",        "self_attn.k_proj.weight",
    "self_attn.v_proj.weight",        "self_attn.o_proj.weight",
    "self_attn.q_norm.weight",        "self_attn.k_norm.weight",
    "mlp.gate_proj.weight",           "mlp.up_proj.weight",
    "mlp.down_proj.weight",           "input_layernorm.weight",
    "post_attention_layernorm.weight"};

std::vector<std::int64_t> slot_shape(const Qwen3Config& c, int slot) {
  switch (slot) {
    case kQ:
      return {c.heads * c.head_dim, c.hidden};
    case kK:
    case kV:
      return {c.kv_heads * c.head_dim, c.hidden};
    case kO:
      return {c.hidden, c.heads * c.head_dim};
    case kQNorm:
    case kKNorm:
      return {c.head_dim};
    case kGate:
    case kUp:
      return {c.mlp, c.hidden};
    case kDown:
      return {c.hidden, c.mlp};
    default:
      return {c.hidden};
  }
}

// Draws parameters one after the other from its own generator, never from the global one.
class Initialiser {
 public:
  Initialiser(std::uint64_t seed, at::ScalarType dtype)
      : generator_(at::detail::createCPUGenerator(seed)), dtype_(dtype) {}

  // Matrices: variance 1 / fan-in. Vectors are norm weights: around one, as after some training.
  ModelTensor draw(std::string name, const std::vector<std::int64_t>& shape) {
    const bool is_matrix = shape.size() == 2;
    at::Tensor value = at::randn(shape, generator_);
    value.mul_(is_matrix ? 1 / std::sqrt(static_cast<double>(shape[1])) : 0.1);
    if (!is_matrix) value.add_(1);
    return {std::move(name), value.to(dtype_).requires_grad_(true)};
  }

 private:
  at::Generator generator_;
  at::ScalarType dtype_;
};

ModelTensors make_parameters(const Qwen3Config& c, std::uint64_t seed, at::ScalarType dtype) {
  Initialiser init(seed, dtype);
  ModelTensors out;
  out.push_back(init.draw("model.embed_tokens.weight", {c.vocab, c.hidden}));
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    for (int slot = 0; slot < kSlots; ++slot) {
      out.push_back(init.draw(prefix + kSlotNames[slot], slot_shape(c, slot)));
    }
  }
  out.push_back(init.draw("model.norm.weight", {c.hidden}));
  if (!c.tied_head) out.push_back(init.draw("lm_head.weight", {c.vocab, c.hidden}));
  return out;
}

at::Tensor inverse_frequencies(const Qwen3Config& c) {
  const at::Tensor even = at::arange(0, c.head_dim, 2, at::kFloat);
  return (even * (-std::log(c.rope_theta) / static_cast<double>(c.head_dim))).exp();
}

at::Tensor rotate_half(const at::Tensor& x) {
  const auto halves = x.chunk(2, -1);
  return at::cat({halves[1].neg(), halves[0]}, -1);
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  return x * cos + rotate_half(x) * sin;
}

}  // namespace

Qwen3::Qwen3(const Qwen3Config& config, std::uint64_t seed, at::ScalarType dtype)
    : config_(config),
      parameters_(make_parameters(config, seed, dtype)),
      buffers_{{"model.rotary_emb.inv_freq", inverse_frequencies(config)}} {}

const at::Tensor& Qwen3::layer_tensor(std::int64_t layer, int slot) const {
  return parameters_[static_cast<std::size_t>(1 + layer * kSlots + slot)].value;
}

const at::Tensor& Qwen3::head() const {
  return config_.tied_head ? parameters_.front().value : parameters_.back().value;
}

at::Tensor Qwen3::norm(const at::Tensor& x, const at::Tensor& weight) const {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor variance = wide.square().mean(-1, /*keepdim=*/true);
  return weight * (wide * at::rsqrt(variance + config_.rms_epsilon)).to(x.scalar_type());
}

at::Tensor Qwen3::attention(std::int64_t layer, const at::Tensor& x, const at::Tensor& cos,
                            const at::Tensor& sin) const {
  const auto heads = [&](int slot, std::int64_t count) {
    return at::linear(x, layer_tensor(layer, slot))
        .view({x.size(0), x.size(1), count, config_.head_dim});
  };
  const at::Tensor q = norm(heads(kQ, config_.heads), layer_tensor(layer, kQNorm));
  const at::Tensor k = norm(heads(kK, config_.kv_heads), layer_tensor(layer, kKNorm));
  const at::Tensor v = heads(kV, config_.kv_heads);
  const std::int64_t repeat = config_.heads / config_.kv_heads;
  const auto grouped = [repeat](const at::Tensor& t) { return t.repeat_interleave(repeat, 1); };
  const at::Tensor mixed = at::scaled_dot_product_attention(
      rotate(q.transpose(1, 2), cos, sin), grouped(rotate(k.transpose(1, 2), cos, sin)),
      grouped(v.transpose(1, 2)), /*attn_mask=*/{}, /*dropout_p=*/0.0, /*is_causal=*/true);
  return at::linear(mixed.transpose(1, 2).reshape({x.size(0), x.size(1), -1}),
                    layer_tensor(layer, kO));
}

at::Tensor Qwen3::mlp(std::int64_t layer, const at::Tensor& x) const {
  const at::Tensor gate = at::silu(at::linear(x, layer_tensor(layer, kGate)));
  return at::linear(gate * at::linear(x, layer_tensor(layer, kUp)), layer_tensor(layer, kDown));
}

at::Tensor Qwen3::hidden(const at::Tensor& tokens) const {
  at::Tensor x = at::embedding(parameters_.front().value, tokens);
  const at::Tensor positions = at::arange(tokens.size(1), at::kFloat);
  const at::Tensor half = at::outer(positions, buffers_.front().value);
  const at::Tensor angles = at::cat({half, half}, -1);
  const at::Tensor cos = angles.cos().to(x.scalar_type());
  const at::Tensor sin = angles.sin().to(x.scalar_type());
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    x = x + attention(layer, norm(x, layer_tensor(layer, kInputNorm)), cos, sin);
    x = x + mlp(layer, norm(x, layer_tensor(layer, kPostNorm)));
  }
  return norm(x, layer_tensor(config_.layers, 0));  // the slot after the last layer
}

at::Tensor Qwen3::logits(const at::Tensor& tokens) const {
  return at::linear(hidden(tokens), head());
}

Qwen3 Qwen3::perturbed_copy(double relative, std::uint64_t seed) const {
  const at::NoGradGuard no_grad;
  auto generator = at::detail::createCPUGenerator(seed);
  Qwen3 copy;
  copy.config_ = config_;
  for (const ModelTensor& source : parameters_) {
    const at::Tensor wide = source.value.to(at::kFloat);
    const double spread = relative * wide.square().mean().sqrt().item<double>();
    const at::Tensor noise = at::randn(wide.sizes(), generator) * spread;
    copy.parameters_.push_back({source.name, (wide + noise).to(source.value.scalar_type())});
  }
  for (const ModelTensor& source : buffers_) {
    copy.buffers_.push_back({source.name, source.value.clone()});
  }
  return copy;
}

}  // namespace gradcheck::native
