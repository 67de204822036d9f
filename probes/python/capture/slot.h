// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "model/record.h"
#include "probes/python/capture/copies.h"
#include "probes/python/capture/view.h"

namespace gradcheck::capture {

// What the backwards since the last close_local brought to one parameter.
struct Arrival {
  Presence presence = Presence::readable;  // or unreadable
  Form form;
  TensorStats stats;                         // merged, where there were several
  std::shared_ptr<const Pool::Block> block;  // of a single one
};

struct Model {
  std::string name;
  std::map<Moment, std::uint64_t> records;  // how many were written, of the last step or so
};

// A tensor that is recorded at every stage, and what has to be remembered of it between them.
struct Slot {
  std::size_t model = 0;  // index of a Model
  std::string name;
  std::string tied_to;
  std::optional<Form> form;  // last seen; stands in where a gradient is absent
  std::optional<Arrival> arrived;
  std::optional<std::pair<Form, Digest>> reduced;   // last one; none where absent or unreadable
  bool final_differs = false;                       // the last time
  std::array<std::optional<Moment>, 6> recorded{};  // by stage: last time
};

}  // namespace gradcheck::capture
