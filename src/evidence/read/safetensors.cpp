// SPDX-License-Identifier: Apache-2.0
#include "evidence/read/safetensors.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "evidence/read/byte_count.h"
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

constexpr std::uint64_t kMaxExtent = std::numeric_limits<std::int64_t>::max();

// Which of two is meant nobody can tell.
void refuse_repeated_keys(element entry) {
  simdjson::dom::object fields;
  if (entry.get(fields) != simdjson::SUCCESS) return;  // told where its fields are read
  std::set<std::string_view> seen;
  for (const auto field : fields) {
    if (!seen.insert(field.key).second) {
      refuse("header: '" + std::string(field.key) + "' occurs twice");
    }
  }
}

Placed placed_from(element entry, std::span<const std::byte> data) {
  refuse_repeated_keys(entry);
  Placed placed;
  placed.view.dtype = dtype_of(get<std::string_view>(entry, "dtype"));
  const auto shape = get<simdjson::dom::array>(entry, "shape");
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::uint64_t extent = unsigned_at(shape, i);
    if (extent > kMaxExtent) refuse("header: shape is too large");
    placed.view.shape.push_back(static_cast<std::int64_t>(extent));
  }
  const auto offsets = get<simdjson::dom::array>(entry, "data_offsets");
  if (offsets.size() != 2) refuse("header: data_offsets needs two numbers");
  placed.begin = unsigned_at(offsets, 0);
  placed.end = unsigned_at(offsets, 1);
  if (placed.begin > placed.end || placed.end > data.size()) {
    refuse("offsets outside the file: bytes " + std::to_string(placed.begin) + " to " +
           std::to_string(placed.end) + " of " + std::to_string(data.size()));
  }
  if (placed.end - placed.begin != byte_count(placed.view.dtype, placed.view.shape))
    refuse("size and shape disagree");
  placed.view.bytes = data.subspan(placed.begin, placed.end - placed.begin);
  return placed;
}

Placed named(std::string_view name, element entry, std::span<const std::byte> data) {
  try {
    return placed_from(entry, data);
  } catch (const InfrastructureError& error) {
    refuse("tensor '" + std::string(name) + "': " + error.what());
  }
}

// Tensors follow each other without a gap, up to the end of the file, as the format demands: what
// belongs to none was cut out of one, or is of another file. `data` is where the first byte lies.
void refuse_overlaps_and_gaps(std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges,
                              std::uint64_t data, std::uint64_t size) {
  std::sort(ranges.begin(), ranges.end());
  ranges.emplace_back(size, size);
  std::uint64_t end = 0;
  for (const auto& [from, to] : ranges) {
    if (from < end) refuse("two tensors overlap at byte " + std::to_string(data + from));
    if (from > end) {
      refuse("bytes " + std::to_string(data + end) + " to " + std::to_string(data + from) +
             " belong to no tensor");
    }
    end = to;
  }
}

std::map<std::string, TensorView> parse(std::span<const std::byte> file) {
  std::uint64_t length = 0;
  if (file.size() < sizeof length) refuse("shorter than its header");
  std::memcpy(&length, file.data(), sizeof length);
  if (length > kMaxHeader || length > file.size() - sizeof length) {
    refuse("header is too long: byte 0 counts " + std::to_string(length) + " of " +
           std::to_string(file.size()));
  }
  const auto* text = reinterpret_cast<const char*>(file.data() + sizeof length);
  simdjson::dom::parser parser;
  simdjson::dom::object root;
  if (parser.parse(text, length).get(root) != simdjson::SUCCESS) refuse("header is not JSON");
  const auto data = file.subspan(sizeof length + length);
  std::map<std::string, TensorView> tensors;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const auto field : root) {
    if (field.key == "__metadata__") {
      if (!field.value.is_object()) refuse("header: __metadata__ is no object");
      continue;
    }
    Placed placed = named(field.key, field.value, data);
    ranges.emplace_back(placed.begin, placed.end);
    if (!tensors.emplace(field.key, std::move(placed.view)).second) refuse("a key occurs twice");
  }
  refuse_overlaps_and_gaps(std::move(ranges), sizeof length + length, data.size());
  return tensors;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) {
  try {
    tensors_ = parse(file_.bytes());
  } catch (const InfrastructureError& error) {
    throw InfrastructureError(path + ": " + error.what());
  }
}

}  // namespace gradcheck
