// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "reports/fan_out.h"
#include "reports/page.h"

namespace gradcheck {

// One --report FORMAT=PATH; "-" is stdout.
struct ReportRequest {
  std::string format;
  std::string path;
};

// Throws UsageError: no "=", an empty path, a format that is not in the registry.
ReportRequest request_from_text(std::string_view text);

// Reporters for all requests, files first, then stdout: the request for "-" if there is one, else
// `format` (--format, usually console). Colour and width are for stdout; a console report in a file
// is plain. Throws UsageError: an unknown format, stdout or a file asked for twice. Opens nothing
// yet.
FanOut open_reports(std::string_view format, std::span<const ReportRequest> requests,
                    const ConsoleOptions& options, int stdout_descriptor = 1);

}  // namespace gradcheck
