// SPDX-License-Identifier: Apache-2.0
#include "numeric/array_digest.h"

#include <algorithm>

#include "numeric/kernel.h"

namespace gradcheck {
namespace {

std::string line_of(const ArrayStamp& array) {
  std::string line = array.key + " " + std::string(name_of(array.dtype)) + " [";
  for (std::size_t i = 0; i < array.shape.size(); ++i) {
    if (i > 0) line += ',';
    line += std::to_string(array.shape[i]);
  }
  return line + "] " + to_hex(array.digest) + "\n";
}

}  // namespace

Digest digest_of(std::span<const ArrayStamp> arrays) {
  std::vector<std::string> lines;
  for (const ArrayStamp& array : arrays) lines.push_back(line_of(array));
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) text += line;
  return measure(DType::u8, std::as_bytes(std::span(text)), KernelMode::digest_only).digest;
}

}  // namespace gradcheck
