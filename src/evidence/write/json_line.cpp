// SPDX-License-Identifier: Apache-2.0
#include "evidence/write/json_line.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

namespace gradcheck {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Length of the valid UTF-8 sequence at the start of `text`; 0 if there is none. Refuses overlong
// forms, surrogates and values past U+10FFFF (Unicode, table 3-7).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool outside = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return overlong || outside ? 0 : length;
}

void append_escaped(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\r':
      out += "\\r";
      return;
    default:
      break;
  }
  const auto code = static_cast<unsigned char>(c);
  if (code >= 0x20) {
    out += c;
    return;
  }
  out += "\\u00";
  out += kHex[code >> 4];
  out += kHex[code & 15];
}

std::string base64(std::span<const unsigned char> bytes) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t present = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (k < present ? bytes[i + k] : 0);
    for (std::size_t k = 0; k < 4; ++k) {
      out += k <= present ? kAlphabet[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

}  // namespace

std::string valid_utf8(std::string_view value) {
  std::string out;
  out.reserve(value.size());
  while (!value.empty()) {
    const std::size_t length = sequence_length(value);
    out += length == 0 ? kReplacement : value.substr(0, length);
    value.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

void JsonLine::quoted(std::string_view value) {
  out_ += '"';
  for (const char c : valid_utf8(value)) append_escaped(out_, c);
  out_ += '"';
}

void JsonLine::key(std::string_view name) {
  if (out_.size() > 1) out_ += ',';
  quoted(name);
  out_ += ':';
}

JsonLine& JsonLine::text(std::string_view name, std::string_view value) {
  key(name);
  quoted(value);
  return *this;
}

JsonLine& JsonLine::integer(std::string_view name, std::int64_t value) {
  key(name);
  out_ += std::to_string(value);
  return *this;
}

JsonLine& JsonLine::count(std::string_view name, std::uint64_t value) {
  key(name);
  out_ += std::to_string(value);
  return *this;
}

JsonLine& JsonLine::real(std::string_view name, double value) {
  key(name);
  if (!std::isfinite(value)) {
    out_ += "null";
    return *this;
  }
  std::array<char, 32> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out_.append(digits.data(), end);
  return *this;
}

JsonLine& JsonLine::boolean(std::string_view name, bool value) {
  key(name);
  out_ += value ? "true" : "false";
  return *this;
}

JsonLine& JsonLine::texts(std::string_view name, const std::vector<std::string>& values) {
  key(name);
  out_ += '[';
  for (const std::string& value : values) {
    quoted(value);
    out_ += ',';
  }
  if (out_.back() == ',') out_.pop_back();
  out_ += ']';
  return *this;
}

JsonLine& JsonLine::doubles_base64(std::string_view name, std::span<const double> values) {
  static_assert(std::endian::native == std::endian::little);
  std::vector<unsigned char> bytes(values.size_bytes());
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  key(name);
  out_ += '"' + base64(bytes) + '"';
  return *this;
}

std::string JsonLine::finish() {
  out_ += '}';
  return std::move(out_);
}

}  // namespace gradcheck
