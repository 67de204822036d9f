// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <utility>

#include "model/payload_view.h"
#include "probes/native/ops.h"

namespace gradcheck::native {

// Copies of a step's tensors, kept until the front has seen the step's records and says `go`.
// Absent gradients are not in it. Tensors are row-major and never written to.
class CloneStore {
 public:
  using Tensors = std::map<std::string, at::Tensor>;  // by name, without the model

  void keep(std::int64_t micro, Stage stage, const std::string& name, at::Tensor tensor);
  const Tensors& at(std::int64_t micro, Stage stage) const;
  void clear() { moments_.clear(); }

 private:
  std::map<std::pair<std::int64_t, Stage>, Tensors> moments_;
};

// Writes what `want` asks for, in its order and within its budget, to a safetensors file under
// DIRECTORY/payload. Keys are "MODEL/name"; names that are not there are left out.
PayloadRecord write_payload(const CloneStore& clones, const Want& want,
                            const std::string& directory, int rank);

}  // namespace gradcheck::native
