// SPDX-License-Identifier: Apache-2.0
#include "evidence/read/safetensors.h"

#include <fcntl.h>
#include <simdjson.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "model/errors.h"

namespace gradcheck {
namespace {

using simdjson::dom::element;

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the reference implementation's limit

struct Placed {
  TensorView view;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

[[noreturn]] void refuse(const std::string& why) { throw InfrastructureError(why); }

template <typename T>
T get(element object, const char* key) {
  T value;
  if (object[key].get(value) != simdjson::SUCCESS) {
    refuse(std::string("header: ") + key + " is missing or of a wrong type");
  }
  return value;
}

DType dtype_of(std::string_view name) {
  const std::optional<DType> dtype = dtype_from_safetensors_name(name);
  if (!dtype) refuse("header: unknown dtype " + std::string(name));
  return *dtype;
}

std::uint64_t unsigned_at(simdjson::dom::array array, std::size_t index) {
  std::uint64_t value;
  if (array.at(index).get(value) != simdjson::SUCCESS) refuse("header: not a list of counts");
  return value;
}

std::uint64_t bytes_of(const TensorView& view) {
  std::uint64_t bytes = size_of(view.dtype);
  for (const std::int64_t extent : view.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) {
      refuse("header: shape is too large");
    }
  }
  return bytes;
}

Placed placed_from(element entry, std::span<const std::byte> data) {
  Placed placed;
  placed.view.dtype = dtype_of(get<std::string_view>(entry, "dtype"));
  const auto shape = get<simdjson::dom::array>(entry, "shape");
  for (std::size_t i = 0; i < shape.size(); ++i) {
    placed.view.shape.push_back(static_cast<std::int64_t>(unsigned_at(shape, i)));
  }
  const auto offsets = get<simdjson::dom::array>(entry, "data_offsets");
  if (offsets.size() != 2) refuse("header: data_offsets needs two numbers");
  placed.begin = unsigned_at(offsets, 0);
  placed.end = unsigned_at(offsets, 1);
  if (placed.begin > placed.end || placed.end > data.size()) refuse("offsets outside the file");
  if (placed.end - placed.begin != bytes_of(placed.view)) refuse("size and shape disagree");
  placed.view.bytes = data.subspan(placed.begin, placed.end - placed.begin);
  return placed;
}

void refuse_overlaps(std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges) {
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) refuse("two tensors overlap");
  }
}

std::map<std::string, TensorView> parse(std::span<const std::byte> file) {
  std::uint64_t length = 0;
  if (file.size() < sizeof length) refuse("shorter than its header");
  std::memcpy(&length, file.data(), sizeof length);
  if (length > kMaxHeader || length > file.size() - sizeof length) refuse("header is too long");
  const auto* text = reinterpret_cast<const char*>(file.data() + sizeof length);
  simdjson::dom::parser parser;
  simdjson::dom::object root;
  if (parser.parse(text, length).get(root) != simdjson::SUCCESS) refuse("header is not JSON");
  const auto data = file.subspan(sizeof length + length);
  std::map<std::string, TensorView> tensors;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const auto field : root) {
    if (field.key == "__metadata__") continue;
    Placed placed = placed_from(field.value, data);
    ranges.emplace_back(placed.begin, placed.end);
    if (!tensors.emplace(field.key, std::move(placed.view)).second) refuse("a key occurs twice");
  }
  refuse_overlaps(std::move(ranges));
  return tensors;
}

}  // namespace

void SafetensorsFile::map(const std::string& path) {
  // Never waits: a pipe in a file's place is refused, not read.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status{};
  if (descriptor < 0) refuse(std::strerror(errno));
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    refuse("not a file");
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* memory = size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  ::close(descriptor);
  if (memory == MAP_FAILED) refuse(std::strerror(errno));
  mapped_ = {static_cast<const std::byte*>(memory), size};
}

SafetensorsFile::SafetensorsFile(const std::string& path) {
  try {
    map(path);
    tensors_ = parse(mapped_);
  } catch (const InfrastructureError& error) {
    if (!mapped_.empty()) ::munmap(const_cast<std::byte*>(mapped_.data()), mapped_.size());
    throw InfrastructureError(path + ": " + error.what());
  }
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : mapped_(std::exchange(other.mapped_, {})), tensors_(std::move(other.tensors_)) {}

SafetensorsFile::~SafetensorsFile() {
  if (!mapped_.empty()) ::munmap(const_cast<std::byte*>(mapped_.data()), mapped_.size());
}

}  // namespace gradcheck
