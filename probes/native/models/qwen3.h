// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "probes/native/models/model_tensor.h"

namespace gradcheck::native {

// Widths of a Qwen3 decoder. The real model is layers 28, hidden 1024, heads 16, kv 8, head_dim
// 128, mlp 3072, vocab 151936; the lab keeps depth and topology and shrinks widths. As there,
// head_dim is not hidden / heads.
struct Qwen3Config {
  std::int64_t layers = 28;
  std::int64_t hidden = 16;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 8;
  std::int64_t mlp = 48;
  std::int64_t vocab = 128;
  bool tied_head = true;
  double rms_epsilon = 1e-6;
  double rope_theta = 1e6;
};

// The decoder of Qwen3 (Hugging Face transformers, modeling_qwen3.py): grouped-query attention with
// RMSNorm over head_dim on queries and keys before rotary embedding, SwiGLU, causal. Names and
// order are those of its `named_parameters()`; a tied head is the embedding's own tensor. Copies
// share parameters.
class Qwen3 {
 public:
  // Equal seeds give equal parameters, whatever the rank. `dtype` is that of the parameters.
  Qwen3(const Qwen3Config& config, std::uint64_t seed, at::ScalarType dtype);

  // tokens [B, T] → hidden states after the final norm [B, T, hidden].
  at::Tensor hidden(const at::Tensor& tokens) const;
  at::Tensor logits(const at::Tensor& tokens) const;  // [B, T, vocab]
  const at::Tensor& head() const;                     // [vocab, hidden]

  const ModelTensors& parameters() const { return parameters_; }
  const ModelTensors& buffers() const { return buffers_; }

  // A frozen model whose parameters are these plus noise of `relative` times their own spread.
  Qwen3 perturbed_copy(double relative, std::uint64_t seed) const;

 private:
  Qwen3() = default;
  const at::Tensor& layer_tensor(std::int64_t layer, int slot) const;
  at::Tensor attention(std::int64_t layer, const at::Tensor& x, const at::Tensor& cos,
                       const at::Tensor& sin) const;
  at::Tensor mlp(std::int64_t layer, const at::Tensor& x) const;
  at::Tensor norm(const at::Tensor& x, const at::Tensor& weight) const;

  Qwen3Config config_;
  ModelTensors parameters_;
  ModelTensors buffers_;
};

}  // namespace gradcheck::native
