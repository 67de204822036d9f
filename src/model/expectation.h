// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "model/scenario.h"

namespace gradcheck {

// Rules on scenarios that hold between fields. The decoder refuses files that break them, the
// options of the command line are held to them too.

// True if the condition admits a run of `ranks` ranks whose native program computes in `dtype`
// (empty: a command, which no list of dtypes admits).
bool holds(const Condition& condition, int ranks, std::string_view dtype);

// The expectation in force for such a run: each `when` that holds is laid over it, in file order.
// The result has no `when`.
Expect expected_for(const Expect& expect, int ranks, std::string_view dtype);

// Fields set in `change` replace those of `base`. Where it demands another outcome, nothing of
// `base` stays: counts, codes and raises belong to an outcome. `when` is left out.
Expect overwritten(const Expect& base, const Expect& change);

// False if nothing at all is demanded, whatever the evidence.
bool demands_something(const Expect& expect);

// Why no evidence could ever meet the expectation; empty if some could.
std::string contradiction_in(const Expect& expect);

// Why the arm cannot be meant for this many ranks and steps: a fault or a raise on a rank that does
// not exist, a fault in a step that never comes. Empty if it fits.
std::string misfit_of(const Arm& arm, int ranks, std::int64_t steps);

// Why the rule cannot be meant for this many ranks: its group names one that does not exist.
std::string misfit_of(const PlanRule& rule, int ranks);

}  // namespace gradcheck
