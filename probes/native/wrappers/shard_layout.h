// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "probes/native/models/model_tensor.h"

namespace gradcheck::native {

// A run of one parameter's elements, in row-major order, and its place in the owner's part.
struct Piece {
  std::int64_t offset = 0;
  std::int64_t numel = 0;  // 0: the rank owns nothing of this parameter
  std::int64_t position = 0;
};

// Which rank owns which elements of some parameters. Parts are of one length, so that one
// collective moves them: what a rank's pieces leave free at its end is padding.
struct ShardLayout {
  std::vector<std::vector<Piece>> ranks;  // by rank and parameter
  std::int64_t part = 0;                  // elements
};

using Cut = ShardLayout (*)(const ModelTensors& parameters, int ranks);

// All parameters one behind the other, cut into equal parts: ZeRO-2's buckets, FSDP1's flat
// parameter.
ShardLayout cut_flat(const ModelTensors& parameters, int ranks);
// Every parameter by itself, flattened: ZeRO-3's partitions.
ShardLayout cut_each(const ModelTensors& parameters, int ranks);
// Every parameter by itself, between rows of its first dimension: FSDP2's Shard(0).
ShardLayout cut_rows(const ModelTensors& parameters, int ranks);

}  // namespace gradcheck::native
