// SPDX-License-Identifier: Apache-2.0
#include "probes/native/losses/sequence_log_probs.h"

#include <array>
#include <stdexcept>
#include <string>

#include "probes/native/losses/log_probs.h"

namespace gradcheck::native {
namespace {

struct LossRow {
  std::string_view name;
  at::Tensor (*log_probs)(const at::Tensor& hidden, const at::Tensor& head,
                          const at::Tensor& targets, const LogProbOptions& options);
};

constexpr std::array<LossRow, 2> kLosses = {{
    {"chunked", chunked_log_probs},
    {"dense", dense_log_probs},
}};

const LossRow& find_loss(std::string_view name) {
  for (const LossRow& row : kLosses) {
    if (row.name == name) return row;
  }
  throw std::invalid_argument("unknown loss " + std::string(name));
}

// The positions whose next token belongs to a completion, packed: N of the B × (T−1).
struct Packed {
  at::Tensor positions;  // [N] into the flattened B × (T−1)
  at::Tensor targets;    // [N]
};

Packed pack(const Sequences& sequences) {
  const at::Tensor positions = sequences.completed.reshape(-1).nonzero().squeeze(1);
  const std::int64_t length = sequences.tokens.size(1);
  const at::Tensor next = sequences.tokens.narrow(1, 1, length - 1);
  return {positions, next.reshape(-1).index_select(0, positions)};
}

at::Tensor select(const at::Tensor& features, const Packed& packed) {
  const at::Tensor shifted = features.narrow(1, 0, features.size(1) - 1);
  return shifted.reshape({-1, features.size(-1)}).index_select(0, packed.positions);
}

at::Tensor sum_by_sequence(const at::Tensor& token_log_probs, const Packed& packed,
                           const Sequences& sequences) {
  const at::Tensor rows = packed.positions.floor_divide(sequences.completed.size(1));
  return at::zeros({sequences.tokens.size(0)}, token_log_probs.options())
      .index_add(0, rows, token_log_probs);
}

}  // namespace

at::Tensor sequence_log_probs(std::string_view loss, const Qwen3& model,
                              const Sequences& sequences) {
  const Packed packed = pack(sequences);
  const at::Tensor hidden = select(model.hidden(sequences.tokens), packed);
  return sum_by_sequence(find_loss(loss).log_probs(hidden, model.head(), packed.targets, {}),
                         packed, sequences);
}

at::Tensor sequence_log_probs_from_logits(const at::Tensor& logits, const Sequences& sequences) {
  const Packed packed = pack(sequences);
  return sum_by_sequence(log_probs_from_logits(select(logits, packed), packed.targets), packed,
                         sequences);
}

}  // namespace gradcheck::native
