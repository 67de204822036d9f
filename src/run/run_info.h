// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/report.h"
#include "run/host.h"

namespace gradcheck {

// SOURCE_DATE_EPOCH, which makes a report reproducible. Errors: UsageError.
std::optional<std::int64_t> source_date_epoch(const Host& host);

// 16 hexadecimal digits that depend on the texts only.
std::string hashed_id(const std::vector<std::string>& texts);

// The part of a run's description that every command fills alike. With an epoch: started_at is it,
// host is empty, the id is hashed from `identity`.
RunInfo begin_run(const Host& host, const std::string& tool_version,
                  const std::vector<std::string>& argv, const std::vector<std::string>& identity);

}  // namespace gradcheck
