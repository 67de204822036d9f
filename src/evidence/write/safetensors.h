// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/dtype.h"

namespace gradcheck {

// A tensor to be written: row-major, little endian, bytes.size() = elements × size_of(dtype).
struct NamedTensor {
  std::string key;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

// Writes a safetensors file: u64 header length, JSON header, data. Goes to PATH.tmp first and is
// renamed, so a reader never sees half a file. Keys must be distinct.
// Errors: InfrastructureError with path and reason.
void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors);

}  // namespace gradcheck
