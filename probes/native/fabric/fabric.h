// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "model/control.h"
#include "probes/native/faults.h"
#include "probes/native/journal.h"
#include "probes/native/ops.h"

namespace gradcheck::native {

struct Group;  // fabric/group.h: LibTorch's process group, for those who need its type

// The process group under test: Gloo on the loopback interface, met through a FileStore in the run
// directory, every collective recorded. Never destroyed: ranks leave with _exit, because Gloo's
// destructor can wait for peers that are gone.
class Fabric {
 public:
  // Blocks until all ranks are there. Throws what LibTorch and Gloo throw.
  Fabric(const RunRecord& run, Journal& journal, const Faults& faults);
  ~Fabric();

  const Group& group() const { return *group_; }
  // One value of every rank, in rank order: [world_size]. Requires: `value` has one element.
  at::Tensor gather(const at::Tensor& value) const;

 private:
  std::unique_ptr<Group> group_;
};

}  // namespace gradcheck::native
