// SPDX-License-Identifier: Apache-2.0
#include "model/json/report.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "model/errors.h"
#include "model/json/report_fields.h"

namespace gradcheck {
namespace {

using Json = nlohmann::ordered_json;

// Writing: encode() turns one value into JSON; rows go through Writer.

class Writer {
 public:
  template <typename T>
  void operator()(const char* key, const T& value);
  void code(const char* key, int number) { object_.emplace(key, code_text(number)); }
  template <typename T>
  void since(const char* key, const T& value) {
    (*this)(key, value);
  }
  Json take() { return std::move(object_); }

 private:
  Json object_ = Json::object();
};

Json encode(const std::string& text) { return text; }
Json encode(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

template <std::integral T>
Json encode(T number) {
  return number;
}

template <typename T>
  requires std::is_enum_v<T>
Json encode(T value) {
  return std::string(name_of(value));
}

template <typename Row>
  requires std::is_class_v<Row>
Json encode(const Row& row) {
  Writer writer;
  report_json::fields(writer, row);
  return writer.take();
}

template <typename T>
Json encode(const std::optional<T>& value) {
  return value ? encode(*value) : Json(nullptr);
}

template <typename T>
Json encode(const std::vector<T>& values) {
  Json array = Json::array();
  for (const T& value : values) array.push_back(encode(value));
  return array;
}

template <typename T>
Json encode(const std::vector<std::pair<std::string, T>>& pairs) {
  Json object = Json::object();
  for (const auto& [key, value] : pairs) object.emplace(key, encode(value));
  return object;
}

template <typename T>
void Writer::operator()(const char* key, const T& value) {
  object_.emplace(key, encode(value));
}

// Where a value stands; the pointer is put together only when something is wrong.
struct Place {
  const Place* parent = nullptr;
  std::string_view key;
  std::optional<std::size_t> index;

  std::string pointer() const {
    if (parent == nullptr) return "";
    return parent->pointer() + "/" + (index ? std::to_string(*index) : std::string(key));
  }
};

[[noreturn]] void refuse(const Place& place, const std::string& message) {
  const std::string pointer = place.pointer();
  throw UsageError((pointer.empty() ? "the document" : pointer) + " " + message);
}

auto from_name(std::string_view name, Outcome) { return outcome_from_name(name); }
auto from_name(std::string_view name, Verdict) { return verdict_from_name(name); }
auto from_name(std::string_view name, RungResult) { return rung_result_from_name(name); }
auto from_name(std::string_view name, Severity) { return severity_from_name(name); }
auto from_name(std::string_view name, Confidence) { return confidence_from_name(name); }
auto from_name(std::string_view name, Cause) { return cause_from_name(name); }
auto from_name(std::string_view name, TensorKind) { return kind_from_name(name); }
auto from_name(std::string_view name, Role) { return role_from_name(name); }
auto from_name(std::string_view name, Reduction) { return reduction_from_name(name); }
auto from_name(std::string_view name, BufferPolicy) { return buffer_policy_from_name(name); }
auto from_name(std::string_view name, PlanSource) { return plan_source_from_name(name); }
auto from_name(std::string_view name, DType) { return dtype_from_name(name); }
auto from_name(std::string_view name, Regime) { return regime_from_name(name); }
auto from_name(std::string_view name, BandLevel) { return band_level_from_name(name); }

// What a value is taken for while its spelling is not known: never a pass.
template <typename T>
T unknown() {
  if constexpr (std::is_same_v<T, RungResult>) return RungResult::inconclusive;
  return T{};
}

// Reads the members of one JSON object.
class Reader {
 public:
  Reader(const Json& object, const Place& place, bool newer)
      : object_(object), place_(place), newer_(newer) {
    if (!object.is_object()) refuse(place, "must be an object");
  }

  template <typename T>
  void operator()(const char* key, T& value) const {
    decode(member(key), Place{&place_, key, {}}, value);
  }

  // A key that a later minor version of the schema added: older reports lack it.
  template <typename T>
  void since(const char* key, T& value) const {
    if (object_.contains(key)) (*this)(key, value);
  }

  // A number that is not in the table of codes stands: a newer gradcheck may know it.
  void code(const char* key, int& number) const {
    std::string text;
    (*this)(key, text);
    const char* end = text.data() + text.size();
    const bool prefixed = text.starts_with("GC");
    const auto [rest, error] = std::from_chars(text.data() + (prefixed ? 2 : 0), end, number);
    const bool whole = prefixed && error == std::errc() && rest == end && number >= 0;
    if (!whole) refuse(Place{&place_, key, {}}, "must be a finding code such as GC201");
  }

 private:
  const Json& member(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) refuse(place_, std::string("lacks the key ") + key);
    return *found;
  }

  void decode(const Json& json, const Place& place, std::string& text) const {
    if (!json.is_string()) refuse(place, "must be a string");
    text = json.get_ref<const std::string&>();
  }

  void decode(const Json& json, const Place& place, bool& value) const {
    if (!json.is_boolean()) refuse(place, "must be true or false");
    value = json.get<bool>();
  }

  void decode(const Json& json, const Place& place, double& number) const {
    if (!json.is_number() && !json.is_null()) refuse(place, "must be a number or null");
    number = json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
  }

  template <std::integral T>
  void decode(const Json& json, const Place& place, T& number) const {
    if (!json.is_number_integer()) refuse(place, "must be a whole number");
    const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<std::uint64_t>())
                                                : std::in_range<T>(json.get<std::int64_t>());
    if (!fits) refuse(place, "is out of range");
    number = json.get<T>();
  }

  template <typename T>
    requires std::is_enum_v<T>
  void decode(const Json& json, const Place& place, T& value) const {
    std::string name;
    decode(json, place, name);
    const auto known = from_name(name, value);
    if (!known && !newer_) refuse(place, "has a value that is not known: " + name);
    if (known) value = *known;
  }

  template <typename Row>
    requires std::is_class_v<Row>
  void decode(const Json& json, const Place& place, Row& row) const {
    const Reader reader(json, place, newer_);
    report_json::fields(reader, row);
  }

  template <typename T>
  void decode(const Json& json, const Place& place, std::optional<T>& value) const {
    if (json.is_null()) return value.reset();
    decode(json, place, value.emplace());
  }

  template <typename T>
  void decode(const Json& json, const Place& place, std::vector<T>& values) const {
    if (!json.is_array()) refuse(place, "must be an array");
    values.clear();
    for (std::size_t i = 0; i < json.size(); ++i) {
      decode(json[i], Place{&place, {}, i}, values.emplace_back());
    }
  }

  template <typename T>
  void decode(const Json& json, const Place& place,
              std::vector<std::pair<std::string, T>>& pairs) const {
    if (!json.is_object()) refuse(place, "must be an object");
    pairs.clear();
    for (const auto& [key, value] : json.items()) {
      decode(value, Place{&place, key, {}}, pairs.emplace_back(key, unknown<T>()).second);
    }
  }

  const Json& object_;
  const Place& place_;
  bool newer_;  // written by a later minor version
};

// A small file can still be expensive: nesting costs stack and a wide object costs quadratic time,
// so both are bounded before the parser sees the text. No report comes near either number.

constexpr std::size_t kMaxDepth = 32;
constexpr int kMaxKeys = 4096;

// Counts brackets and colons outside strings; right for JSON, harmless for anything else.
void refuse_monsters(std::string_view text) {
  std::vector<int> keys = {0};  // of each open bracket
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '{' || c == '[')) {
      keys.push_back(0);
      if (keys.size() > kMaxDepth) throw UsageError("it is nested too deeply to be a report");
    } else if (!quoted && (c == '}' || c == ']')) {
      if (keys.size() > 1) keys.pop_back();
    } else if (!quoted && c == ':' && ++keys.back() > kMaxKeys) {
      throw UsageError("an object has too many keys to be a report");
    }
  }
}

Json parse(std::string_view text) {
  if (text.size() > kMaxReportBytes) throw UsageError("it is too large to be a report");
  if (text.find_first_not_of(" \t\r\n") == text.npos) throw UsageError("it is empty");
  refuse_monsters(text);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw UsageError("it is not JSON: wrong at byte " + std::to_string(error.byte));
  } catch (const Json::exception&) {
    throw UsageError("it is not JSON: a number is out of range");
  }
}

void check_schema(const Json& json) {
  const auto schema = json.is_object() ? json.find("schema") : json.end();
  if (!json.is_object() || schema == json.end() || !schema->is_string()) {
    throw UsageError("it is not a gradcheck report: it names no schema");
  }
  const auto& name = schema->get_ref<const std::string&>();
  if (name == kReportSchema) return;
  throw UsageError("its schema is " + name.substr(0, 40) + "; this gradcheck reads " +
                   kReportSchema);
}

Report decode_report(std::string_view text) {
  const Json json = parse(text);
  check_schema(json);
  const Place root;
  const auto minor = json.find("schema_minor");
  const bool newer =
      minor != json.end() && minor->is_number_integer() && *minor > kReportSchemaMinor;
  const Reader reader(json, root, newer);
  Report report;
  report_json::fields(reader, report);
  return report;
}

}  // namespace

std::string report_to_json(const Report& report, int indent) {
  return encode(report).dump(indent, ' ', false, Json::error_handler_t::replace);
}

Report report_from_json(std::string_view text, const std::string& file) {
  try {
    return decode_report(text);
  } catch (const UsageError& error) {
    throw UsageError("cannot read report " + file + ": " + error.what());
  }
}

}  // namespace gradcheck
