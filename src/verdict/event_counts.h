// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "model/evidence_table.h"
#include "model/report.h"
#include "verdict/findings.h"

namespace gradcheck {

// Backwards of one model on the first rank that ran any.
struct BackwardCounts {
  std::uint64_t all = 0;
  std::uint64_t outside_no_sync = 0;  // that were meant to be reduced
  std::uint64_t armed = 0;            // of those, with an armed reducer
  bool last_under_no_sync = false;    // of some step
  std::string site;                   // FILE:LINE of the first that was not armed, else of any
};

BackwardCounts count_backwards(const EvidenceTable& table, std::string_view model);

// Totals of the report: backwards and forwards of rank 0, collectives of rank 0.
EventTotals count_events(const EvidenceTable& table);

// A stray arm: the bare module ran with gradients on in a micro-step whose backward was armed by
// another forward of the wrapper (GC212, a warning: the gradients may still be right).
void find_stray_arms(const Context& context, FindingSet& findings);

}  // namespace gradcheck
