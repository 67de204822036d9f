// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/dtype.h"
#include "model/tensor_stats.h"
#include "probes/native/ops.h"

namespace gradcheck::native {

// A tensor as the kernel and the payload writer take it.

DType dtype_of(const at::Tensor& tensor);
std::vector<std::int64_t> shape_of(const at::Tensor& tensor);

// The tensor itself where it is row-major already, otherwise a copy; undefined stays undefined.
at::Tensor row_major(const at::Tensor& tensor);

// Valid as long as the tensor's storage. Requires: contiguous, on the CPU.
std::span<const std::byte> bytes_of(const at::Tensor& tensor);

// Copies `from` into `to`, of the same dtype and shape and row-major, and measures it in full on
// the way, so that each cache line comes from memory once. `first`: index of the first element in
// the whole tensor that it is a shard of.
TensorStats copy_and_measure(const at::Tensor& from, const at::Tensor& to, std::uint64_t first = 0);

std::uint64_t bytes_in(const std::vector<at::Tensor>& tensors);

}  // namespace gradcheck::native
