// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "model/log_probs.h"

namespace gradcheck {

// Padding that counted would thin out every mean. In shards without a mask, runs of four or more
// tokens at the front or the end of a row that are exactly 0 on both sides are masked: the shard is
// copied into `masked`, given a mask, and takes its place in `judged`. Returns the tokens masked.
std::int64_t mask_padding(std::vector<const LogProbShard*>& judged,
                          std::vector<LogProbShard>& masked);

}  // namespace gradcheck
