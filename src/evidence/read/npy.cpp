// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "evidence/read/array_formats.h"
#include "evidence/read/byte_count.h"
#include "model/errors.h"

namespace gradcheck {
namespace {

// The format: numpy.lib.format. Magic, version, length of the header, a Python dictionary of three
// keys, the elements.

[[noreturn]] void refuse(const std::string& why) { throw InfrastructureError(why); }

constexpr std::string_view kMagic = "\x93NUMPY";

constexpr std::pair<std::string_view, DType> kTypes[] = {
    {"<f8", DType::f64}, {"<f4", DType::f32}, {"<f2", DType::f16},
    {"<i8", DType::i64}, {"<i4", DType::i32}, {"<i2", DType::i16},
    {"|i1", DType::i8},  {"|u1", DType::u8},  {"|b1", DType::boolean}};

DType dtype_of(std::string_view descr) {
  for (const auto& [name, dtype] : kTypes) {
    if (name == descr) return dtype;
  }
  refuse("header: elements of type '" + std::string(descr) +
         "' are not read; save float32, or bfloat16 as safetensors");
}

// Walks the dictionary; every expectation that fails is an error with its byte.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  void expect(char wanted) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != wanted) {
      refuse("header: '" + std::string(1, wanted) + "' expected at its byte " +
             std::to_string(at_));
    }
    ++at_;
  }
  bool take(char wanted) {
    skip_spaces();
    const bool there = at_ < text_.size() && text_[at_] == wanted;
    at_ += there ? 1 : 0;
    return there;
  }
  std::string_view quoted() {
    expect('\'');
    const std::size_t end = text_.find('\'', at_);
    if (end == std::string_view::npos) refuse("header: a string has no end");
    const std::size_t start = std::exchange(at_, end + 1);
    return text_.substr(start, end - start);
  }
  std::string_view word() {
    skip_spaces();
    const std::size_t start = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '}') ++at_;
    return text_.substr(start, at_ - start);
  }
  std::int64_t count() {
    skip_spaces();
    std::int64_t value = -1;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) refuse("header: the shape is not a list of counts");
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::vector<std::int64_t> shape_of(Reader& reader) {
  std::vector<std::int64_t> shape;
  reader.expect('(');
  while (!reader.take(')')) {
    shape.push_back(reader.count());
    if (!reader.take(',')) {
      reader.expect(')');
      break;
    }
  }
  return shape;
}

struct Header {
  std::optional<DType> dtype;
  std::optional<bool> fortran;
  std::optional<std::vector<std::int64_t>> shape;
};

void read_field(Reader& reader, Header& header) {
  const std::string_view key = reader.quoted();
  reader.expect(':');
  if (key == "descr" && !header.dtype) {
    header.dtype = dtype_of(reader.quoted());
  } else if (key == "fortran_order" && !header.fortran) {
    header.fortran = reader.word() != "False";
  } else if (key == "shape" && !header.shape) {
    header.shape = shape_of(reader);
  } else {
    refuse("header: '" + std::string(key) + "' is unknown or occurs twice");
  }
}

Header header_of(std::string_view text) {
  Reader reader(text);
  Header header;
  reader.expect('{');
  while (!reader.take('}')) {
    read_field(reader, header);
    if (!reader.take(',')) {
      reader.expect('}');
      break;
    }
  }
  if (!header.dtype || !header.fortran || !header.shape) refuse("header: a key is missing");
  if (*header.fortran && header.shape->size() > 1) {
    refuse("the array is in Fortran order; save numpy.ascontiguousarray of it");
  }
  return header;
}

// Length of the header and where it starts: two bytes of length in version 1, four after it.
std::pair<std::size_t, std::size_t> header_place(std::span<const std::byte> bytes) {
  const bool is_npy = bytes.size() >= 10 && std::memcmp(bytes.data(), kMagic.data(), 6) == 0;
  if (!is_npy) refuse("not a .npy file: its first bytes are not those of the format");
  const auto version = static_cast<int>(bytes[6]);
  if (version < 1 || version > 3) refuse("version " + std::to_string(version) + " is unknown");
  const std::size_t width = version == 1 ? 2 : 4;
  std::uint32_t length = 0;
  if (bytes.size() < 8 + width) refuse("truncated inside its header");
  std::memcpy(&length, bytes.data() + 8, width);
  if (length > bytes.size() - 8 - width) {
    refuse("header of " + std::to_string(length) + " bytes in a file of " +
           std::to_string(bytes.size()));
  }
  return {8 + width, length};
}

}  // namespace

NamedArray parse_npy(std::span<const std::byte> bytes) {
  const auto [start, length] = header_place(bytes);
  Header header = header_of({reinterpret_cast<const char*>(bytes.data()) + start, length});
  NamedArray array;
  array.dtype = *header.dtype;
  array.shape = std::move(*header.shape);
  array.bytes = bytes.subspan(start + length);
  const std::uint64_t wanted = byte_count(array.dtype, array.shape);
  if (wanted != array.bytes.size()) {
    refuse("shape and type ask for " + std::to_string(wanted) + " bytes, " +
           std::to_string(array.bytes.size()) + " follow the header");
  }
  return array;
}

}  // namespace gradcheck
