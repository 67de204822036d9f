// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/json/strict.h"
#include "model/scenario.h"

namespace gradcheck {

// What an arm must show. Refused besides unknown words: an expectation that demands nothing or that
// no evidence could meet, with each `when` laid over it or without. Internal to model/json.
Expect expect_from(const Node& node);

}  // namespace gradcheck
