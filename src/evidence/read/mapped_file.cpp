// SPDX-License-Identifier: Apache-2.0
#include "evidence/read/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "model/errors.h"

namespace gradcheck {
namespace {

std::span<const std::byte> mapped(const std::string& path) {
  // Never waits: a pipe in a file's place is refused, not read.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) throw InfrastructureError(path + ": " + std::strerror(errno));
  struct stat status{};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw InfrastructureError(path + ": not a file");
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* memory = size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int error = errno;
  ::close(descriptor);
  if (memory == MAP_FAILED) throw InfrastructureError(path + ": " + std::strerror(error));
  return {static_cast<const std::byte*>(memory), size};
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : mapped_(mapped(path)) {}

MappedFile::MappedFile(MappedFile&& other) noexcept : mapped_(std::exchange(other.mapped_, {})) {}

MappedFile::~MappedFile() {
  if (!mapped_.empty()) ::munmap(const_cast<std::byte*>(mapped_.data()), mapped_.size());
}

}  // namespace gradcheck
