// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/evidence_table.h"
#include "model/log_prob_set.h"

namespace gradcheck {

// Reads the log-probs that the table's records name, below `directory`, by step and name. Files lie
// inside it and hold the very arrays that were recorded (keys, types, shapes, elements): what does
// not is refused in the table.
std::vector<LogProbSet> read_log_probs(const std::string& directory, EvidenceTable& table);

}  // namespace gradcheck
