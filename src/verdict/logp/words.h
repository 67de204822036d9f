// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/log_probs.h"

namespace gradcheck {

// The reading's one sentence and what the difference does to training.
std::string headline_of(const LogProbReading& reading);
std::string harm_of(const LogProbReading& reading);

}  // namespace gradcheck
