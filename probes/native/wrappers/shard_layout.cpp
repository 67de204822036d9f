// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/shard_layout.h"

#include <algorithm>

namespace gradcheck::native {
namespace {

std::int64_t rounded_up(std::int64_t n, std::int64_t parts) { return (n + parts - 1) / parts; }

// What of [begin, end) lies in the stretch of `size` elements that starts at `first`.
Piece piece_within(std::int64_t first, std::int64_t size, std::int64_t begin, std::int64_t end) {
  const std::int64_t from = std::clamp(begin, first, first + size);
  const std::int64_t to = std::clamp(end, first, first + size);
  return {from - first, to - from, from - begin};
}

// Equal shares of `unit` elements and their multiples, each parameter by itself.
ShardLayout cut_by(const ModelTensors& parameters, int ranks,
                   std::int64_t (*unit)(const at::Tensor& parameter)) {
  ShardLayout layout;
  layout.ranks.resize(static_cast<std::size_t>(ranks));
  for (const ModelTensor& parameter : parameters) {
    const std::int64_t size = parameter.value.numel();
    const std::int64_t whole = unit(parameter.value);
    const std::int64_t share = whole == 0 ? 0 : rounded_up(size / whole, ranks) * whole;
    for (int rank = 0; rank < ranks; ++rank) {
      Piece piece = piece_within(0, size, rank * share, (rank + 1) * share);
      piece.position = layout.part;
      layout.ranks[static_cast<std::size_t>(rank)].push_back(piece);
    }
    layout.part += share;
  }
  return layout;
}

}  // namespace

ShardLayout cut_flat(const ModelTensors& parameters, int ranks) {
  std::int64_t total = 0;
  for (const ModelTensor& parameter : parameters) total += parameter.value.numel();
  ShardLayout layout;
  layout.part = rounded_up(total, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t begin = rank * layout.part;
    auto& pieces = layout.ranks.emplace_back();
    std::int64_t first = 0;
    for (const ModelTensor& parameter : parameters) {
      const std::int64_t size = parameter.value.numel();
      Piece piece = piece_within(first, size, begin, begin + layout.part);
      if (piece.numel == 0) piece.position = 0;
      pieces.push_back(piece);
      first += size;
    }
  }
  return layout;
}

ShardLayout cut_each(const ModelTensors& parameters, int ranks) {
  return cut_by(parameters, ranks, [](const at::Tensor&) { return std::int64_t{1}; });
}

ShardLayout cut_rows(const ModelTensors& parameters, int ranks) {
  return cut_by(parameters, ranks, [](const at::Tensor& parameter) {
    return parameter.numel() / std::max<std::int64_t>(parameter.size(0), 1);
  });
}

}  // namespace gradcheck::native
