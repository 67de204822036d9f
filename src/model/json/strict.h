// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/native_parts.h"
#include "model/nearest.h"

namespace gradcheck {

// Strict decoding of JSON documents: nothing is skipped, guessed or converted, and every refusal is
// a ScenarioError with file and JSON pointer. Internal to model/json. Keys keep their order.

using Json = nlohmann::ordered_json;

inline constexpr std::size_t kMaxJsonBytes = 1 << 20;
inline constexpr int kMaxJsonDepth = 64;
inline constexpr std::int64_t kMaxJsonInteger = std::int64_t{1} << 53;  // exact in any JSON reader

// The whole text as one document. Refused: more than kMaxJsonBytes or kMaxJsonDepth, a key given
// twice in an object, text after the document, comments, bytes that are not UTF-8.
Json parse_strictly(std::string_view text, const std::string& file);

// Appends "/key" to a JSON pointer, escaped as RFC 6901 says.
void append_to_pointer(std::string& pointer, std::string_view key);

// 'text' for an error message: shortened, unprintable bytes as '?'.
std::string in_quotes(std::string_view text);

// A value and where it stands. Does not own the document.
class Node {
 public:
  Node(const Json& value, std::string file, std::string pointer = "")
      : value_(&value), file_(std::move(file)), pointer_(std::move(pointer)) {}

  [[noreturn]] void fail(const std::string& message) const;

  bool boolean() const;
  double number() const;                                           // finite
  std::int64_t integer(std::int64_t min, std::int64_t max) const;  // 2.0 is an integer, 2.5 is not
  std::string text() const;                                        // not empty
  // Text of the characters that names may have: letters, digits, `_` and `.`, no dot first.
  std::string identifier() const;
  std::string one_of(std::span<const std::string_view> words) const;
  std::string one_of(std::span<const NativePart> parts) const;
  std::vector<Node> items(std::size_t at_least = 0) const;
  std::vector<std::string> texts(std::size_t at_least = 0) const;
  std::vector<std::int64_t> integers(std::int64_t min, std::int64_t max) const;  // one or more

  const Json& json() const { return *value_; }
  const std::string& file() const { return file_; }
  const std::string& pointer() const { return pointer_; }
  Node child(std::string_view key, const Json& value) const;

 private:
  const Json* value_;
  std::string file_;
  std::string pointer_;
};

// An object all of whose keys are known; the constructor refuses others.
class ObjectNode {
 public:
  ObjectNode(const Node& node, std::initializer_list<std::string_view> known_keys);

  std::optional<Node> find(std::string_view key) const;
  Node require(std::string_view key) const;
  bool empty() const;
  const Node& node() const { return node_; }

 private:
  Node node_;
};

// Decodes `key` into `field` if the object has it; otherwise the default stays.
template <typename Field, typename Decode>
void read(const ObjectNode& object, std::string_view key, Field& field, Decode decode) {
  if (const auto node = object.find(key)) field = decode(*node);
}
void read_text(const ObjectNode& object, std::string_view key, std::string& field);
void read_flag(const ObjectNode& object, std::string_view key, bool& field);
void read_number(const ObjectNode& object, std::string_view key, double& field);
void read_integer(const ObjectNode& object, std::string_view key, std::int64_t& field,
                  std::int64_t min, std::int64_t max = kMaxJsonInteger);
void read_part(const ObjectNode& object, std::string_view key, std::string& field,
               std::span<const NativePart> parts);

// A word that names one of the values 0 … `last` of an enumeration.
template <typename Enum>
Enum enum_up_to(const Node& node, Enum last) {
  std::vector<std::string_view> words;
  for (int i = 0; i <= static_cast<int>(last); ++i) words.push_back(name_of(static_cast<Enum>(i)));
  const std::string word = node.one_of(words);
  return static_cast<Enum>(std::find(words.begin(), words.end(), word) - words.begin());
}

}  // namespace gradcheck
