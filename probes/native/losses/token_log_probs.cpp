// SPDX-License-Identifier: Apache-2.0
#include "probes/native/losses/token_log_probs.h"

#include <array>
#include <stdexcept>
#include <string>

namespace gradcheck::native {
namespace {

struct LossRow {
  std::string_view name;
  at::Tensor (*log_probs)(const at::Tensor& hidden, const at::Tensor& head,
                          const at::Tensor& targets, const LogProbOptions& options);
};

constexpr std::array<LossRow, 3> kLosses = {{
    {"chunked", chunked_log_probs},
    {"dense", dense_log_probs},
    {"fused", dense_log_probs},
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

at::Tensor unpack(const at::Tensor& log_probs, const Packed& packed, const Sequences& sequences) {
  return at::zeros({sequences.completed.numel()}, log_probs.options())
      .index_add(0, packed.positions, log_probs)
      .view_as(sequences.completed);
}

}  // namespace

at::Tensor token_log_probs(std::string_view loss, const at::Tensor& hidden, const at::Tensor& head,
                           const Sequences& sequences, const LogProbOptions& options) {
  const Packed packed = pack(sequences);
  const at::Tensor features = select(hidden, packed);
  return unpack(find_loss(loss).log_probs(features, head, packed.targets, options), packed,
                sequences);
}

at::Tensor token_log_probs_from_logits(const at::Tensor& logits, const Sequences& sequences,
                                       const LogProbOptions& options) {
  const Packed packed = pack(sequences);
  return unpack(log_probs_from_logits(select(logits, packed), packed.targets, options), packed,
                sequences);
}

}  // namespace gradcheck::native
