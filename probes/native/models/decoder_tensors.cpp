// SPDX-License-Identifier: Apache-2.0
#include "probes/native/models/decoder_tensors.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/randn.h>

#include <cmath>
#include <string>
#include <utility>

namespace gradcheck::native {
namespace {

using Shape = std::vector<std::int64_t>;

// Draws tensors one after the other from its own generator, never from the global one, and lists
// them as it goes.
class Builder {
 public:
  Builder(const DecoderConfig& config, std::uint64_t seed, at::ScalarType dtype)
      : c_(config), generator_(at::detail::createCPUGenerator(seed)), dtype_(dtype) {}

  DecoderTensors build();

 private:
  // Matrices: variance 1 / fan-in.
  at::Tensor matrix(const std::string& name, const Shape& shape) {
    return add(name,
               at::randn(shape, generator_).mul_(1 / std::sqrt(static_cast<double>(shape[1]))));
  }
  // Norm weights lie around one, as after some training; biases around zero.
  at::Tensor around(double centre, const std::string& name, std::int64_t size) {
    return add(name, at::randn(Shape{size}, generator_).mul_(0.1).add_(centre));
  }
  at::Tensor norm(const std::string& name, std::int64_t size) { return around(1, name, size); }
  at::Tensor add(const std::string& name, const at::Tensor& value);

  Projection projection(const std::string& name, std::int64_t out, std::int64_t in, bool bias);
  void add_adapter(const std::string& name, Projection& projection);
  void attention(const std::string& prefix, LayerTensors& layer);
  void norms(const std::string& prefix, LayerTensors& layer);
  void mlp(const std::string& prefix, LayerTensors& layer);
  Expert expert(const std::string& prefix);
  LayerTensors layer(std::int64_t index);
  void rotary();

  const DecoderConfig& c_;
  at::Generator generator_;
  at::ScalarType dtype_;
  DecoderTensors out_;
};

// With adapters everything else is frozen.
at::Tensor Builder::add(const std::string& name, const at::Tensor& value) {
  at::Tensor parameter = value.to(dtype_).requires_grad_(c_.lora_rank == 0);
  out_.parameters.push_back({name, parameter});
  return parameter;
}

Projection Builder::projection(const std::string& name, std::int64_t out, std::int64_t in,
                               bool bias) {
  Projection made;
  made.weight = matrix(name + ".weight", {out, in});
  if (bias) made.bias = around(0, name + ".bias", out);
  if (c_.lora_rank > 0 && out == in) add_adapter(name, made);
  return made;
}

void Builder::add_adapter(const std::string& name, Projection& projection) {
  const std::int64_t width = projection.weight.size(0);
  projection.lora_a = matrix(name + ".lora.A.weight", {c_.lora_rank, width}).requires_grad_(true);
  projection.lora_b =
      add(name + ".lora.B.weight", at::zeros({width, c_.lora_rank})).requires_grad_(true);
}

void Builder::attention(const std::string& prefix, LayerTensors& layer) {
  const std::int64_t wide = c_.heads * c_.head_dim;
  const std::int64_t narrow = c_.kv_heads * c_.head_dim;
  layer.q = projection(prefix + "q_proj", wide, c_.hidden, c_.qkv_bias);
  layer.k = projection(prefix + "k_proj", narrow, c_.hidden, c_.qkv_bias);
  layer.v = projection(prefix + "v_proj", narrow, c_.hidden, c_.qkv_bias);
  layer.o = projection(prefix + "o_proj", c_.hidden, wide, false);
  if (!c_.qk_norm) return;
  layer.q_norm = norm(prefix + "q_norm.weight", c_.head_dim);
  layer.k_norm = norm(prefix + "k_norm.weight", c_.head_dim);
}

void Builder::norms(const std::string& prefix, LayerTensors& layer) {
  layer.input_norm = norm(prefix + "input_layernorm.weight", c_.hidden);
  layer.post_norm = norm(prefix + "post_attention_layernorm.weight", c_.hidden);
}

Expert Builder::expert(const std::string& prefix) {
  const bool minimind = c_.family == Family::minimind;
  Expert made;
  made.gate = matrix(prefix + "gate_proj.weight", {c_.mlp, c_.hidden});
  if (minimind) made.down = matrix(prefix + "down_proj.weight", {c_.hidden, c_.mlp});
  made.up = matrix(prefix + "up_proj.weight", {c_.mlp, c_.hidden});
  if (!minimind) made.down = matrix(prefix + "down_proj.weight", {c_.hidden, c_.mlp});
  return made;
}

void Builder::mlp(const std::string& prefix, LayerTensors& layer) {
  if (c_.experts == 0) return layer.experts.push_back(expert(prefix));
  layer.router = matrix(prefix + "gate.weight", {c_.experts, c_.hidden});
  for (std::int64_t i = 0; i < c_.experts; ++i) {
    layer.experts.push_back(expert(prefix + "experts." + std::to_string(i) + "."));
  }
}

LayerTensors Builder::layer(std::int64_t index) {
  const std::string prefix = "model.layers." + std::to_string(index) + ".";
  LayerTensors made;
  attention(prefix + "self_attn.", made);
  if (c_.family == Family::minimind) norms(prefix, made);
  mlp(prefix + "mlp.", made);
  if (c_.family == Family::transformers) norms(prefix, made);
  return made;
}

// transformers keeps the frequencies and computes the angles anew; minimind keeps two tables.
void Builder::rotary() {
  const at::Tensor even = at::arange(0, c_.head_dim, 2, at::kFloat);
  const double slope = -std::log(c_.rope_theta) / static_cast<double>(c_.head_dim);
  const at::Tensor frequencies = (even * slope).exp();
  if (c_.family == Family::transformers) {
    out_.buffers.push_back({"model.rotary_emb.inv_freq", frequencies});
    return;
  }
  const at::Tensor half = at::outer(at::arange(c_.positions, at::kFloat), frequencies);
  const at::Tensor angles = at::cat({half, half}, -1);
  out_.buffers.push_back({"model.freqs_cos", angles.cos()});
  out_.buffers.push_back({"model.freqs_sin", angles.sin()});
}

DecoderTensors Builder::build() {
  out_.embedding = matrix("model.embed_tokens.weight", {c_.vocab, c_.hidden});
  for (std::int64_t i = 0; i < c_.layers; ++i) out_.layers.push_back(layer(i));
  out_.norm = norm("model.norm.weight", c_.hidden);
  out_.head = c_.tied_head ? out_.embedding : matrix("lm_head.weight", {c_.vocab, c_.hidden});
  if (c_.value_head) out_.value = projection("value_head", 1, c_.hidden, true);
  rotary();
  return std::move(out_);
}

}  // namespace

DecoderTensors make_tensors(const DecoderConfig& config, std::uint64_t seed, at::ScalarType dtype) {
  return Builder(config, seed, dtype).build();
}

}  // namespace gradcheck::native
