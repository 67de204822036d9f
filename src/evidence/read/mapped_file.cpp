// SPDX-License-Identifier: Apache-2.0
#include "evidence/read/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
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

// Pages that `bytes` touch (`whole` false) or cover (true). Hints may fail without harm: older
// kernels know fewer.
void advise(std::span<const std::byte> bytes, bool whole, int advice) {
  static const auto kPage = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t end = begin + bytes.size();
  const std::uintptr_t from = (whole ? begin + kPage - 1 : begin) / kPage * kPage;
  const std::uintptr_t to = whole ? end / kPage * kPage : end;
  if (from < to) ::madvise(reinterpret_cast<void*>(from), to - from, advice);
}

}  // namespace

void expect_reading(std::span<const std::byte> bytes) {
#ifdef MADV_POPULATE_READ
  advise(bytes, false, MADV_POPULATE_READ);
#else
  advise(bytes, false, MADV_WILLNEED);
#endif
}

void drop_pages(std::span<const std::byte> bytes) { advise(bytes, true, MADV_DONTNEED); }

MappedFile::MappedFile(const std::string& path) : mapped_(mapped(path)) {}

MappedFile::MappedFile(MappedFile&& other) noexcept : mapped_(std::exchange(other.mapped_, {})) {}

MappedFile::~MappedFile() {
  if (!mapped_.empty()) ::munmap(const_cast<std::byte*>(mapped_.data()), mapped_.size());
}

}  // namespace gradcheck
