// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/report.h"
#include "model/scenario.h"

namespace gradcheck {

// An arm that names a reference is that arm with one thing changed. Where both have readings of
// log-probs of one step and name, says in both how far their difference falls: in the changed arm's
// headline, and among the notes of its reference, which thus lists what explains it and what does
// not.
void tell_counterfactuals(const Scenario& scenario, ScenarioReport& report);

}  // namespace gradcheck
