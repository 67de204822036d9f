// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/log_probs.h"

namespace gradcheck {

// What the ranks of one world handed over under one name in one step.
struct LogProbSet {
  std::int64_t step = 0;
  std::string name;
  std::string source;                // who handed it over, as the lowest rank says
  std::vector<LogProbShard> shards;  // by rank, each rank's in the order recorded
  std::vector<int> missing;          // ranks that handed over nothing
  std::vector<std::pair<int, std::string>> unwritten;  // rank, why its arrays were not written
};

}  // namespace gradcheck
