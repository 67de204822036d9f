// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/dtype.h"

namespace gradcheck {

// One array of a dump: dense with a shape, or ragged with the ends of its rows. Elements are little
// endian and row-major. Owned by the file it came from.
struct NamedArray {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;   // of a dense array
  std::vector<std::size_t> offsets;  // of a ragged one, in elements: rows + 1; empty otherwise
  std::span<const std::byte> bytes;

  bool is_ragged() const { return !offsets.empty(); }
};

// What a container holds, whatever its format: safetensors, .npz, .npy (one array, named after the
// file's stem) or JSON lines, a row each. Hostile input: everything is checked before it is used.
// Errors: InfrastructureError, one sentence with path, place and reason.
struct ArrayFile {
  std::string path;
  std::map<std::string, NamedArray> arrays;
  // Of JSON lines: lists that some rows have and others do not, each with the reason why it is no
  // array. Whoever asks for one by name must say so, not do without it.
  std::map<std::string, std::string> incomplete;
  std::shared_ptr<const void> storage;  // what the bytes live in
  bool mapped = false;                  // it is a MappedFile, not memory
};

// Of what .npz members unpack to (that is kept in memory, the other formats are mapped).
inline constexpr std::uint64_t kMostUnpackedBytes = std::uint64_t{16} << 30;

ArrayFile open_array_file(const std::string& path,
                          std::uint64_t most_unpacked = kMostUnpackedBytes);

}  // namespace gradcheck
