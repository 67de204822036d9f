// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include "model/log_probs.h"

namespace gradcheck {

// Reads old against new and says whether the new log-probs are the old ones before the first
// update, and if not, what differs (verdicts.md §9). Shards whose old is new, or that have
// optimizer steps between old and new, are left out where others remain, and said so.
// Requires: arrays of one shard are empty or of equal length; offsets ascend from 0 to it.
LogProbReading judge_log_probs(std::span<const LogProbShard> shards,
                               const LogProbConditions& conditions);

}  // namespace gradcheck
