// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "evidence/read/array_file.h"

namespace gradcheck {

// The names that systems give to the arrays of a dump: what sampled (or came first) is old, what is
// held against it is new. Empty: the system has no such array.
struct LogProbNames {
  std::string_view system;
  std::string_view old_values, new_values, mask;
  std::string_view second_mask;  // multiplied with mask; a column for rows, or an array like it
};

std::span<const LogProbNames> known_log_prob_names();

// The first system whose old and new are both in the file. Errors: UsageError that lists what is.
const LogProbNames& names_in(const ArrayFile& file);

}  // namespace gradcheck
