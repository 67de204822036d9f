// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "model/report.h"

namespace gradcheck {

// Schema report-1 (docs/report.md) to and from JSON text. Pure. Keys stand in the order of
// model/report.h, so the same report gives the same bytes, and reading then writing gives them
// back.

// Longer texts are refused unread; a report of 100 arms with every row is a tenth of it.
inline constexpr std::size_t kMaxReportBytes = std::size_t{128} << 20;

// Non-finite numbers become null; bytes that are not UTF-8 become U+FFFD. No final newline.
// `indent` spaces a level; −1: one line.
std::string report_to_json(const Report& report, int indent = 2);

// Keys that are not known are ignored; one that schema_minor 0 has and the text lacks is refused,
// because no default is evidence. In a report of a newer minor version a spelling that is not
// known leaves the field's default. Throws UsageError: "cannot read report FILE: POINTER must be
// …".
Report report_from_json(std::string_view text, const std::string& file);

}  // namespace gradcheck
