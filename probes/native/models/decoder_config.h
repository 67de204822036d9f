// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "model/scenario.h"

namespace gradcheck::native {

// Whose names, order of tensors and rotary buffers a decoder has.
enum class Family : std::uint8_t { transformers, minimind };

// Widths and options of a decoder. The lab keeps depth and topology of the originals and shrinks
// widths; the defaults are Qwen3-0.6B (layers 28, hidden 1024, heads 16, kv 8, head_dim 128, mlp
// 3072, vocab 151936 there). As in Qwen3, head_dim need not be hidden / heads.
struct DecoderConfig {
  Family family = Family::transformers;
  std::int64_t layers = 28;
  std::int64_t hidden = 16;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 8;
  std::int64_t mlp = 48;
  std::int64_t vocab = 128;
  bool tied_head = true;
  bool qk_norm = true;          // RMSNorm over head_dim on queries and keys, before rotation
  bool qkv_bias = false;        // Qwen2
  bool value_head = false;      // minimind's critic: hidden → 1, with bias
  std::int64_t experts = 0;     // of the MLP, one a token; 0: an ordinary MLP
  std::int64_t lora_rank = 0;   // adapters on square projections, the rest frozen; 0: none
  std::int64_t positions = 64;  // rows of minimind's rotary tables; 32768 there
  LogitOptions logits = {};     // what log-probs make of its logits
  double rms_epsilon = 1e-6;
  double rope_theta = 1e6;
};

}  // namespace gradcheck::native
