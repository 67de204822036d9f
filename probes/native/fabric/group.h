// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace gradcheck::native {

struct Group {
  c10::intrusive_ptr<c10d::ProcessGroup> processes;
};

}  // namespace gradcheck::native
