// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradcheck {

// Builds one flat JSON object, key by key, in the order of the calls. Small on purpose: it also
// runs inside users' jobs (through libgradcheck_capture), where no JSON library may be needed.
class JsonLine {
 public:
  JsonLine& text(std::string_view key, std::string_view value);
  JsonLine& integer(std::string_view key, std::int64_t value);
  JsonLine& count(std::string_view key, std::uint64_t value);
  JsonLine& real(std::string_view key, double value);  // null where not finite
  JsonLine& boolean(std::string_view key, bool value);
  JsonLine& texts(std::string_view key, const std::vector<std::string>& values);
  template <std::integral Integer>
  JsonLine& integers(std::string_view key, const std::vector<Integer>& values);
  // 8·n bytes, little endian, as base64.
  JsonLine& doubles_base64(std::string_view key, std::span<const double> values);

  std::string finish();  // once; closes the object

 private:
  void key(std::string_view name);
  void quoted(std::string_view value);

  std::string out_ = "{";
};

// `value` with every byte that is not part of valid UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view value);

template <std::integral Integer>
JsonLine& JsonLine::integers(std::string_view name, const std::vector<Integer>& values) {
  key(name);
  out_ += '[';
  for (const Integer value : values) out_ += std::to_string(value) + ',';
  if (out_.back() == ',') out_.pop_back();
  out_ += ']';
  return *this;
}

}  // namespace gradcheck
