// SPDX-License-Identifier: Apache-2.0
#include "probes/native/models/model_table.h"

#include <array>
#include <stdexcept>
#include <string>

namespace gradcheck::native {
namespace {

struct ModelRow {
  std::string_view name;
  Qwen3Config config;
};

constexpr std::array<ModelRow, 2> kModels = {{
    {"qwen3_0_6b", {}},
    {"qwen3_tiny_untied", {.layers = 2, .mlp = 32, .tied_head = false}},
}};

// The override scales the MLP and the heads with it and keeps head_dim twice hidden / heads.
Qwen3Config widened(Qwen3Config config, std::int64_t hidden) {
  if (hidden == 0) return config;
  if (hidden < 0 || hidden % config.heads != 0) {
    throw std::invalid_argument("hidden_size must be a positive multiple of " +
                                std::to_string(config.heads));
  }
  config.mlp = config.mlp * hidden / config.hidden;
  config.head_dim = 2 * hidden / config.heads;
  config.hidden = hidden;
  return config;
}

at::ScalarType scalar_type(const std::string& dtype) {
  if (dtype == "fp32") return at::kFloat;
  if (dtype == "bf16") return at::kBFloat16;
  throw std::invalid_argument("unknown dtype " + dtype);
}

}  // namespace

Qwen3 make_model(const NativeProgram& program, std::uint64_t seed) {
  for (const ModelRow& row : kModels) {
    if (row.name == program.model) {
      return {widened(row.config, program.hidden_size), seed, scalar_type(program.dtype)};
    }
  }
  throw std::invalid_argument("unknown model " + program.model);
}

}  // namespace gradcheck::native
