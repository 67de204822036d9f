// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "model/outcome.h"
#include "model/report.h"
#include "verdict/findings.h"

namespace gradcheck {

// How the ranks ended, and whose fault it was.
struct ProgramEnd {
  std::vector<RankRow> ranks;
  std::optional<Outcome> outcome;  // raised or error; unset where every rank's evidence is complete
  std::string headline;            // of that outcome
};

// Names the guilty: a rank whose connection broke because another one raised, died or hung is a
// consequence and is not accused. A rank that crashes or hangs after it has closed the same stages
// as the ranks that ended is a note (GC802) and spoils nothing.
ProgramEnd read_end(const Context& context, FindingSet& findings);

// The exception that a rank reported first; null if none.
const EventRecord* exception_of(const RankEvidence& rank);

}  // namespace gradcheck
