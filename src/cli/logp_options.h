// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/log_probs.h"

namespace gradcheck {

// Options of `gradcheck logp` as they are written. Errors: UsageError that says what was wanted.
struct LogpWords {
  std::string regime, dtype;
  std::vector<std::string> sampling;  // top_p=0.9, top_k=20, min_p=0.1; commas separate, too
  std::string temperature, lag, clip;
  bool experts = false;
};

LogProbConditions conditions_from(const LogpWords& words);

}  // namespace gradcheck
