// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/dtype.h"
#include "probes/native/ops.h"

namespace gradcheck::native {

// A tensor as the kernel and the payload writer take it.

DType dtype_of(const at::Tensor& tensor);
std::vector<std::int64_t> shape_of(const at::Tensor& tensor);

// A row-major copy that shares nothing with `tensor`; undefined stays undefined.
at::Tensor row_major_copy(const at::Tensor& tensor);

// Valid as long as the tensor's storage. Requires: contiguous, on the CPU.
std::span<const std::byte> bytes_of(const at::Tensor& tensor);

}  // namespace gradcheck::native
