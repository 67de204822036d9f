// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace gradcheck {

// A file's bytes, mapped for reading for as long as the object lives. Moving it moves no byte.
// Errors: InfrastructureError with path and reason; a pipe or folder in a file's place is refused.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return mapped_; }

 private:
  std::span<const std::byte> mapped_;
};

}  // namespace gradcheck
