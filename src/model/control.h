// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <variant>

#include "model/payload_view.h"
#include "model/scenario.h"

namespace gradcheck {

// Front → rank (evidence.md, "Control records, front to rank"). To and from JSON lines:
// model/json/control.h.

// First record a native rank gets: the arm's program with all defaults filled in.
struct RunRecord {
  std::string run;        // id that the rank repeats in `hello`
  std::string directory;  // run directory: store/ and payload/ lie in it
  int rank = 0;
  int world_size = 1;
  std::int64_t steps = 1;
  std::int64_t micro_steps = 1;
  std::uint64_t seed = 0;
  double rendezvous_timeout_s = 30;
  double collective_timeout_s = 35;  // Gloo's; longer than the front's step deadline
  NativeProgram program;
};

// The rank may drop its clones of the step and go on.
struct GoRecord {
  std::int64_t step = 0;
};

using ControlRecord = std::variant<RunRecord, Want, GoRecord>;

}  // namespace gradcheck
