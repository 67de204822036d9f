// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "model/record.h"

namespace gradcheck {

// Records as JSON lines of schema evidence-1, without the newline. `sequence` is the rank's line
// number, from 0. Doubles are the shortest text that reads back to the same double; non-finite ones
// become null. Text that is not UTF-8 is replaced by U+FFFD; free text is cut so that no line
// passes kMaxLineBytes.
std::string to_line(const HelloRecord& record, std::uint64_t sequence);
std::string to_line(const TensorRecord& record, std::uint64_t sequence);
std::string to_line(const GroupRecord& record, std::uint64_t sequence);
std::string to_line(const WrapperRecord& record, std::uint64_t sequence);
std::string to_line(const MarkRecord& record, std::uint64_t sequence);
std::string to_line(const EventRecord& record, std::uint64_t sequence);
std::string to_line(const LogProbRecord& record, std::uint64_t sequence);
std::string to_line(const PayloadRecord& record, std::uint64_t sequence);
std::string to_line(const ByeRecord& record, std::uint64_t sequence);

}  // namespace gradcheck
