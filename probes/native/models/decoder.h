// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/core/Generator.h>

#include <cstdint>

#include "probes/native/models/decoder_tensors.h"

namespace gradcheck::native {

// A causal decoder with grouped-query attention, rotary embedding and SwiGLU: Qwen3 and Qwen2 as in
// Hugging Face transformers, minimind's dense model, mixture of experts, critic and LoRA, by its
// config. Copies share parameters.
class Decoder {
 public:
  Decoder(const DecoderConfig& config, std::uint64_t seed, at::ScalarType dtype);

  // tokens [B, T] → hidden states after the final norm [B, T, hidden].
  at::Tensor hidden(const at::Tensor& tokens) const;
  at::Tensor logits(const at::Tensor& tokens) const;  // [B, T, vocab]
  // The critic's [B, T]: its body's output has been normed and is normed once more, by the same
  // weight, before the value head. Requires: config.value_head.
  at::Tensor values(const at::Tensor& tokens) const;

  const at::Tensor& head() const { return tensors_.head; }  // [vocab, hidden]
  const DecoderConfig& config() const { return config_; }
  const ModelTensors& parameters() const { return tensors_.parameters; }
  const ModelTensors& buffers() const { return tensors_.buffers; }

  // What routing does with expert 0 from now on, in every layer: an idle expert is never chosen.
  // `touched`: an idle expert is added as 0 · Σ parameters, minimind's rule, so that its gradients
  // are zero and not absent.
  void set_idle_expert(bool idle, bool touched);

  // Dropout of the embeddings and of each layer's two outputs, in training mode only. Numbers come
  // from the seed last given, forward after forward.
  void set_dropout(double share) { dropout_ = share; }
  void seed_dropout(std::uint64_t seed);
  double dropout() const { return dropout_; }
  void train(bool training) { training_ = training; }
  bool training() const { return training_; }

  // A frozen model whose parameters are these plus noise of `relative` times their own spread.
  Decoder perturbed_copy(double relative, std::uint64_t seed) const;

 private:
  struct Rotation {
    at::Tensor cos, sin;  // [T, head_dim]
  };
  Rotation rotation(std::int64_t length, at::ScalarType dtype) const;
  at::Tensor attention(const LayerTensors& layer, const at::Tensor& x,
                       const Rotation& rotation) const;
  at::Tensor mlp(const LayerTensors& layer, const at::Tensor& x) const;
  at::Tensor norm(const at::Tensor& x, const at::Tensor& weight) const;
  at::Tensor thinned(const at::Tensor& x) const;  // by dropout

  DecoderConfig config_;
  at::ScalarType dtype_;
  DecoderTensors tensors_;
  bool idle_expert_ = false;
  bool touch_idle_ = true;
  double dropout_ = 0;
  bool training_ = true;
  at::Generator dropout_numbers_;
};

// Evaluation mode as long as it lives; then the mode before it, also where an exception passes.
class EvalMode {
 public:
  explicit EvalMode(Decoder& model) : model_(model), before_(model.training()) {
    model_.train(false);
  }
  ~EvalMode() { model_.train(before_); }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  Decoder& model_;
  bool before_;
};

}  // namespace gradcheck::native
