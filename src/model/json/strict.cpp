// SPDX-License-Identifier: Apache-2.0
#include "model/json/strict.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "model/errors.h"

namespace gradcheck {
namespace {

// " (known: gloo, nccl)"; nothing where the list is too long to help.
std::string known_words(std::span<const std::string_view> words) {
  constexpr std::size_t kShown = 16;
  if (words.size() > kShown) return "";
  std::string text;
  for (std::string_view word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return " (known: " + text + ")";
}

std::string range_text(std::int64_t min, std::int64_t max) {
  if (max == kMaxJsonInteger) return std::to_string(min) + " to 2^53";
  return std::to_string(min) + " to " + std::to_string(max);
}

// JSON knows one kind of number: 2.0 is the integer 2, as in JSON Schema draft 6 and later.
std::optional<std::int64_t> whole_number(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const auto as_double = value.get<double>();
  const bool exact = std::trunc(as_double) == as_double &&
                     std::abs(as_double) <= static_cast<double>(kMaxJsonInteger);
  if (!exact) return std::nullopt;
  return value.is_number_float() ? static_cast<std::int64_t>(as_double) : value.get<std::int64_t>();
}

bool is_name_character(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

std::vector<std::string_view> names_of(std::span<const NativePart> parts) {
  std::vector<std::string_view> names;
  for (const NativePart& part : parts) names.push_back(part.name);
  return names;
}

}  // namespace

void append_to_pointer(std::string& pointer, std::string_view key) {
  pointer += '/';
  for (char c : key) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 60;
  std::string shown(text.substr(0, kShown));
  std::replace_if(shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return "'" + shown + (text.size() > kShown ? "…" : "") + "'";
}

void Node::fail(const std::string& message) const { throw ScenarioError(file_, pointer_, message); }

bool Node::boolean() const {
  if (!value_->is_boolean()) fail("must be true or false");
  return value_->get<bool>();
}

double Node::number() const {
  if (!value_->is_number()) fail("must be a number");
  return value_->get<double>();
}

std::int64_t Node::integer(std::int64_t min, std::int64_t max) const {
  const auto value = whole_number(*value_);
  if (!value || *value < min || *value > max) {
    fail("must be an integer from " + range_text(min, max));
  }
  return *value;
}

std::string Node::text() const {
  if (!value_->is_string()) fail("must be a string");
  const auto& value = value_->get_ref<const std::string&>();
  if (value.empty()) fail("must not be empty");
  return value;
}

std::string Node::identifier() const {
  std::string value = text();
  const bool right = std::ranges::all_of(value, is_name_character) && value.front() != '.';
  if (!right) fail(in_quotes(value) + " is no name: use letters, digits, '_' and '.'");
  return value;
}

std::string Node::one_of(std::span<const std::string_view> words) const {
  std::string value = text();
  if (std::ranges::find(words, value) != words.end()) return value;
  fail("there is no " + in_quotes(value) + did_you_mean(value, words) + known_words(words));
}

std::string Node::one_of(std::span<const NativePart> parts) const {
  return one_of(std::span<const std::string_view>(names_of(parts)));
}

std::vector<Node> Node::items(std::size_t at_least) const {
  if (!value_->is_array()) fail("must be an array");
  if (value_->size() < at_least) fail("must not be empty");
  std::vector<Node> nodes;
  for (std::size_t i = 0; i < value_->size(); ++i) {
    nodes.push_back(child(std::to_string(i), (*value_)[i]));
  }
  return nodes;
}

std::vector<std::string> Node::texts(std::size_t at_least) const {
  std::vector<std::string> values;
  for (const Node& item : items(at_least)) values.push_back(item.text());
  return values;
}

std::vector<std::int64_t> Node::integers(std::int64_t min, std::int64_t max) const {
  std::vector<std::int64_t> values;
  for (const Node& item : items(1)) {
    values.push_back(item.integer(min, max));
    const bool twice =
        std::find(values.begin(), values.end() - 1, values.back()) != values.end() - 1;
    if (twice) item.fail(std::to_string(values.back()) + " stands in the list twice");
  }
  return values;
}

Node Node::child(std::string_view key, const Json& value) const {
  std::string pointer = pointer_;
  append_to_pointer(pointer, key);
  return Node(value, file_, std::move(pointer));
}

ObjectNode::ObjectNode(const Node& node, std::initializer_list<std::string_view> known_keys)
    : node_(node) {
  if (!node.json().is_object()) node.fail("must be an object");
  const std::span<const std::string_view> known(known_keys.begin(), known_keys.size());
  for (const auto& [key, value] : node.json().items()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    node.child(key, value).fail("unknown key " + in_quotes(key) + did_you_mean(key, known));
  }
}

std::optional<Node> ObjectNode::find(std::string_view key) const {
  const auto found = node_.json().find(key);
  if (found == node_.json().end()) return std::nullopt;
  return node_.child(key, *found);
}

Node ObjectNode::require(std::string_view key) const {
  auto node = find(key);
  if (!node) node_.fail("needs the key '" + std::string(key) + "'");
  return *std::move(node);
}

bool ObjectNode::empty() const { return node_.json().empty(); }

void read_text(const ObjectNode& object, std::string_view key, std::string& field) {
  read(object, key, field, [](const Node& node) { return node.text(); });
}
void read_flag(const ObjectNode& object, std::string_view key, bool& field) {
  read(object, key, field, [](const Node& node) { return node.boolean(); });
}
void read_number(const ObjectNode& object, std::string_view key, double& field) {
  read(object, key, field, [](const Node& node) { return node.number(); });
}
void read_integer(const ObjectNode& object, std::string_view key, std::int64_t& field,
                  std::int64_t min, std::int64_t max) {
  read(object, key, field, [=](const Node& node) { return node.integer(min, max); });
}
void read_part(const ObjectNode& object, std::string_view key, std::string& field,
               std::span<const NativePart> parts) {
  read(object, key, field, [=](const Node& node) { return node.one_of(parts); });
}

}  // namespace gradcheck
