// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "evidence/read/array_file.h"

namespace gradcheck {

// One function a format; open_array_file chooses. Errors carry no path: it is put before them.

// A .npy file or member: header checked, elements where they lie. Big-endian, Fortran order and
// types without an equal of ours are refused.
NamedArray parse_npy(std::span<const std::byte> bytes);

// Unpacks all members, at most `most_bytes` of them.
ArrayFile open_npz(const std::string& path, std::uint64_t most_bytes);
ArrayFile open_json_lines(const std::string& path);

}  // namespace gradcheck
