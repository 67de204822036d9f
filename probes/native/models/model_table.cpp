// SPDX-License-Identifier: Apache-2.0
#include "probes/native/models/model_table.h"

#include <array>
#include <stdexcept>
#include <string>

namespace gradcheck::native {
namespace {

struct ModelRow {
  std::string_view name;
  DecoderConfig config;
};

// minimind: 8 layers, hidden 768, heads 8 / 4 of 96, mlp 2432, vocab 6400.
constexpr DecoderConfig kMinimind = {
    .family = Family::minimind, .layers = 8, .head_dim = 4, .mlp = 48};

constexpr DecoderConfig with_value_head(DecoderConfig config, bool tied_head) {
  config.value_head = true;
  config.tied_head = tied_head;
  return config;
}
constexpr DecoderConfig untied(DecoderConfig config) {
  config.tied_head = false;
  return config;
}
constexpr DecoderConfig with_real_tables(DecoderConfig config) {
  config.head_dim = 96;
  config.positions = 32768;
  return config;
}
constexpr DecoderConfig with_experts(DecoderConfig config) {
  config.experts = 4;
  config.mlp = 16;
  return config;
}
constexpr DecoderConfig with_adapters(DecoderConfig config) {
  config.lora_rank = 2;
  return config;
}

constexpr std::array<ModelRow, 10> kModels = {{
    {"qwen3_0_6b", {}},
    {"qwen3_tiny_untied", {.layers = 2, .mlp = 32, .tied_head = false}},
    {"qwen2_tiny_untied",
     {.layers = 2,
      .head_dim = 4,
      .mlp = 32,
      .tied_head = false,
      .qk_norm = false,
      .qkv_bias = true}},
    {"minimind", kMinimind},
    {"minimind_untied", untied(kMinimind)},
    {"minimind_critic", with_value_head(kMinimind, true)},
    {"minimind_critic_untied", with_value_head(kMinimind, false)},
    {"minimind_real_tables", with_real_tables(kMinimind)},
    {"minimind_moe", with_experts(kMinimind)},
    {"minimind_lora", with_adapters(kMinimind)},
}};

// The override scales the MLP and the heads with it.
DecoderConfig widened(DecoderConfig config, std::int64_t hidden) {
  if (hidden == 0) return config;
  if (hidden < 0 || hidden % config.heads != 0) {
    throw std::invalid_argument("hidden_size must be a positive multiple of " +
                                std::to_string(config.heads));
  }
  config.mlp = config.mlp * hidden / config.hidden;
  config.head_dim = config.head_dim * hidden / config.hidden;
  config.hidden = hidden;
  return config;
}

at::ScalarType scalar_type(const std::string& dtype) {
  if (dtype == "fp32") return at::kFloat;
  if (dtype == "bf16") return at::kBFloat16;
  throw std::invalid_argument("unknown dtype " + dtype);
}

}  // namespace

Decoder make_model(const std::string& name, const NativeProgram& program, std::uint64_t seed) {
  for (const ModelRow& row : kModels) {
    if (row.name != name) continue;
    DecoderConfig config = widened(row.config, program.hidden_size);
    if (program.vocab_size > 0) config.vocab = program.vocab_size;
    config.logits = program.logits;
    return {config, seed, scalar_type(program.dtype)};
  }
  throw std::invalid_argument("unknown model " + name);
}

}  // namespace gradcheck::native
