// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "model/tensor_stats.h"
#include "numeric/kernel.h"
#include "probes/python/capture/view.h"

namespace gradcheck::capture {

// Reads tensors with the kernel. Keeps the buffer through which non-contiguous tensors are walked.
// One thread at a time. Requires, everywhere: the view is readable.
class Meter {
 public:
  TensorStats measure(const View& view, KernelMode mode);
  // Copies the elements to `to`, row-major, and measures what arrived there, so that the digest is
  // the copy's even if somebody writes to the tensor meanwhile. Requires: to.size() == view.bytes.
  TensorStats copy_and_measure(const View& view, KernelMode mode, std::span<std::byte> to);
  // −0 counts. Requires: is_measured(dtype).
  bool is_zero(const View& view);

 private:
  std::span<std::byte> buffer();

  std::vector<std::byte> buffer_;
};

}  // namespace gradcheck::capture
