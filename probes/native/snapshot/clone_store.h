// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <utility>

#include "model/payload_view.h"
#include "probes/native/ops.h"

namespace gradcheck::native {

// A step's tensors, kept until the front has seen the step's records and says `go`. Absent
// gradients are not in it. Tensors are row-major, and nothing writes to them as long as they are
// here: those that the step goes on to change are copies.
class CloneStore {
 public:
  using Tensors = std::map<std::string, at::Tensor>;  // by "model/name"

  void keep(std::int64_t micro, Stage stage, const std::string& name, at::Tensor tensor);
  const Tensors& at(std::int64_t micro, Stage stage) const;
  void clear() { moments_.clear(); }

  // Memory for a copy of `like`, row-major, the same in every step: what a step writes there is
  // gone with the next one. Fresh memory in every step costs more than the copying: the system
  // has to find and clear its pages.
  at::Tensor space(std::int64_t micro, Stage stage, const std::string& name,
                   const at::Tensor& like);

 private:
  using Moments = std::map<std::pair<std::int64_t, Stage>, Tensors>;

  Moments moments_;
  Moments spaces_;
};

// The answer to a `want`.
struct Payload {
  PayloadRecord record;
  std::string problem;  // why nothing could be written; the record then names no file
};

// Writes what `want` asks for, in its order and within its budget, to a safetensors file in
// DIRECTORY/payload, which must be there. Keys are "model/name"; names that no store kept are left
// out.
Payload write_payload(const std::vector<const CloneStore*>& stores, const Want& want,
                      const std::string& directory, int rank);

}  // namespace gradcheck::native
