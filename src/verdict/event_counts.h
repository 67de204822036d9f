// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <set>
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
  bool last_under_no_sync = false;    // of some step that an optimizer came to
  std::string site;                   // FILE:LINE of the first that was not armed, else of any

  bool is_bypassed() const { return outside_no_sync > 0 && armed == 0; }
  bool is_partly_armed() const { return armed > 0 && armed < outside_no_sync; }
};

// Of the moments named; of all where there are none.
BackwardCounts count_backwards(const Context& context, std::string_view model,
                               const std::set<Moment>& within = {});

// Forwards of a model's wrapper on rank 0 that armed its reduction.
std::uint64_t count_armed_forwards(const EvidenceTable& table, std::string_view model);

// Totals of the report: backwards and forwards of rank 0, collectives of rank 0.
EventTotals count_events(const EvidenceTable& table);

// A stray arm: the bare module ran with gradients on in a micro-step whose backward was armed by
// another forward of the wrapper (GC212, a warning: the gradients may still be right).
void find_stray_arms(const Context& context, FindingSet& findings);

}  // namespace gradcheck
