// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>

#include "model/report.h"
#include "reports/page.h"

namespace gradcheck {

// What stands beneath an arm's line at `indent`: for an arm that ended as expected the worst names,
// warnings and notes; for any other its reason, findings, causes, next step and the ranks that did
// not end well.
void add_explanation(Page& page, std::size_t indent, const ArmReport& arm);

// How to look closer, beneath an arm that failed or could not be judged. `command` may be empty.
void add_rerun(Page& page, std::size_t indent, const ArmReport& arm, const std::string& command);

}  // namespace gradcheck
