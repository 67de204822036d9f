// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/report.h"

namespace gradcheck {

// The whole report as report-1 JSON (docs/report.md), one document with a final newline.
std::string json_text(const Report& report);

}  // namespace gradcheck
