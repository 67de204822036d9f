// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "model/report.h"
#include "reports/page.h"

namespace gradcheck {

// One reading of an arm's log-probs: of a job its step and name, regime and how it is known,
// counts, statistics with their formulas, profiles over position and log-prob, worst tokens and
// rows, what each test saw.
void add_log_probs(Page& page, std::size_t indent, const LogProbArm& judged);

// One block character a value, the largest full; values that are not finite are '?'. Empty groups
// are blank.
std::string sparkline(const std::vector<LogProbGroup>& groups);

}  // namespace gradcheck
