// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "model/record.h"

namespace gradcheck {

// A record of a type that this version does not know. Readers ignore it.
struct UnknownRecord {};

using Record = std::variant<UnknownRecord, HelloRecord, TensorRecord, GroupRecord, WrapperRecord,
                            MarkRecord, EventRecord, PayloadRecord, LogProbRecord, ByeRecord>;

struct ParsedLine {
  Record record;
  std::uint64_t sequence = 0;
};

// Turns JSON lines of schema evidence-1 into records. Keeps its parser's buffers between lines, so
// keep one for a stream. Unknown keys and unknown event types are ignored.
// Errors: std::runtime_error that says which field is missing or of a wrong type.
class LineParser {
 public:
  LineParser();
  ~LineParser();
  LineParser(LineParser&& other) noexcept;
  ParsedLine parse(std::string_view line);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gradcheck
