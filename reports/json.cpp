// SPDX-License-Identifier: Apache-2.0
#include "reports/json.h"

#include "model/json/report.h"

namespace gradcheck {

std::string json_text(const Report& report) { return report_to_json(report) + "\n"; }

}  // namespace gradcheck
