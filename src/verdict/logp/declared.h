// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "verdict/logp/facts.h"

namespace gradcheck {

// How much a declared condition can account for at most: what is beyond is judged like any other
// difference (docs/logp.md, "Declared conditions").

// True if the declared temperature explains the differences up to what the band allows. One side is
// the other at temperature T: with p the flatter distribution, s = max(T, 1/T) − 1 and V classes,
// log p_sharp − log p = s·(log p + H), where H, a Rényi entropy of p, is between 0 and log V.
bool fits_the_temperature(const LogProbFacts& facts);

// The band of a side that is `lag` updates behind: wider by what so many updates make at a learning
// rate that is high already. Without a lag the band itself.
LogProbBand widened_by_lag(LogProbBand band, std::optional<std::int64_t> lag);

}  // namespace gradcheck
