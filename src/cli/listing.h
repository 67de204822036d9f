// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/scenario.h"
#include "run/skip_reasons.h"

namespace gradcheck {

// Scenarios for people: ranks, needs and tags, why one is skipped here, and each arm with what it
// must show. `columns`: of the terminal.
std::string listing_of(const std::vector<Scenario>& scenarios, SkipReasons& reasons,
                       std::size_t columns);

// What an arm must show, in the words of a report: "310/310 differed, GC101 GC201".
std::string demand_of(const Expect& expect);

}  // namespace gradcheck
