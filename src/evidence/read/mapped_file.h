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

// Hints for streams through files that may be larger than memory: the pages of `bytes` will be read
// now, and are not needed any more. What is dropped is read again from the file when touched, so
// `bytes` must be a MappedFile's: other memory would lose what it holds.
void expect_reading(std::span<const std::byte> bytes);
void drop_pages(std::span<const std::byte> bytes);

}  // namespace gradcheck
