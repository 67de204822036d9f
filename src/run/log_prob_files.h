// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/log_probs.h"

namespace gradcheck {

// Where the arrays of `gradcheck logp` lie: containers that hold all of them under the names of
// some system (docs/logp.md), or files for each role; one of each a rank. PATH:NAME picks an
// array of a container.
struct LogProbFiles {
  std::vector<std::string> containers;
  std::vector<std::string> old_values, new_values, mask, rollout, ref, entropy, new_repeat,
      token_ids;
};

// Reads them, a shard a rank. Nothing is guessed: arrays must agree row by row, masks hold 0 and 1.
// Errors: UsageError, one sentence with file and row.
std::vector<LogProbShard> read_log_probs(const LogProbFiles& files);

}  // namespace gradcheck
