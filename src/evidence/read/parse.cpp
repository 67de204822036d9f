// SPDX-License-Identifier: Apache-2.0
#include "evidence/read/parse.h"

#include <simdjson.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>

namespace gradcheck {
namespace {

using simdjson::dom::element;

// Typed access to one object; every error names the field.
class Fields {
 public:
  explicit Fields(element object) : object_(object) {}

  std::string text(std::string_view key) const {
    return std::string(required<std::string_view>(key));
  }
  std::string text_or(std::string_view key, std::string_view fallback) const {
    return std::string(optional<std::string_view>(key).value_or(fallback));
  }
  std::int64_t integer(std::string_view key) const { return required<std::int64_t>(key); }
  std::int64_t integer_or(std::string_view key, std::int64_t fallback) const {
    return optional<std::int64_t>(key).value_or(fallback);
  }
  std::uint64_t count(std::string_view key) const { return required<std::uint64_t>(key); }
  std::uint64_t count_or(std::string_view key, std::uint64_t fallback) const {
    return optional<std::uint64_t>(key).value_or(fallback);
  }
  // null stands for a value that was not finite.
  double real(std::string_view key) const {
    const element value = required<element>(key);
    if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
    return converted<double>(key, value);
  }
  double real_or(std::string_view key, double fallback) const {
    return has(key) ? real(key) : fallback;
  }
  std::optional<bool> flag(std::string_view key) const { return optional<bool>(key); }
  bool is_list(std::string_view key) const { return has(key) && object_[key].is_array(); }
  bool is_null(std::string_view key) const { return !has(key) || object_[key].is_null(); }
  bool has(std::string_view key) const { return object_[key].error() == simdjson::SUCCESS; }

  // A list of strings; a missing key is an empty list. The word `all` also stands for one.
  std::vector<std::string> texts(std::string_view key) const {
    std::vector<std::string> values;
    if (!has(key)) return values;
    if (object_[key].is_string() && required<std::string_view>(key) == "all") return values;
    for (const element value : required<simdjson::dom::array>(key)) {
      values.emplace_back(converted<std::string_view>(key, value));
    }
    return values;
  }
  std::vector<std::int64_t> integers(std::string_view key) const {
    std::vector<std::int64_t> values;
    for (const element value : required<simdjson::dom::array>(key)) {
      values.push_back(converted<std::int64_t>(key, value));
    }
    return values;
  }
  template <typename Enum>
  Enum named(std::string_view key, std::optional<Enum> (*lookup)(std::string_view)) const {
    const std::string name = text(key);
    const std::optional<Enum> value = lookup(name);
    if (!value) throw std::runtime_error(std::string(key) + ": unknown value '" + name + "'");
    return *value;
  }

 private:
  template <typename T>
  static T converted(std::string_view key, element value) {
    T out;
    if (value.get(out) != simdjson::SUCCESS) {
      throw std::runtime_error(std::string(key) + " is of a wrong type");
    }
    return out;
  }
  template <typename T>
  T required(std::string_view key) const {
    element value;
    if (object_[key].get(value) != simdjson::SUCCESS) {
      throw std::runtime_error(std::string(key) + " is missing");
    }
    return converted<T>(key, value);
  }
  template <typename T>
  std::optional<T> optional(std::string_view key) const {
    if (!has(key)) return std::nullopt;
    return required<T>(key);
  }

  element object_;
};

int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

constexpr std::size_t kSketchBytes = sizeof(Sketch);
constexpr std::size_t kSketchText = (kSketchBytes + 2) / 3 * 4;

Sketch decoded_sketch(std::string_view text) {
  if (text.size() != kSketchText) throw std::runtime_error("sketch has a wrong length");
  std::array<unsigned char, kSketchText / 4 * 3> bytes;
  for (std::size_t i = 0; i < kSketchText; i += 4) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const bool padding = text[i + k] == '=' && i + k >= kSketchText - 2;
      const int value = padding ? 0 : base64_value(text[i + k]);
      if (value < 0) throw std::runtime_error("sketch is not base64");
      group = group << 6 | static_cast<std::uint32_t>(value);
    }
    for (std::size_t k = 0; k < 3; ++k) {
      bytes[i / 4 * 3 + k] = static_cast<unsigned char>(group >> (16 - 8 * k));
    }
  }
  Sketch sketch;
  std::memcpy(sketch.data(), bytes.data(), kSketchBytes);
  return sketch;
}

std::uint64_t from_hex(std::string_view text) {
  std::uint64_t value = 0;
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) throw std::runtime_error("digest is not hexadecimal");
    value = value << 4 | static_cast<std::uint64_t>(digit);
  }
  return value;
}

Digest decoded_digest(std::string_view text) {
  if (text.size() != 32) throw std::runtime_error("digest has a wrong length");
  return {from_hex(text.substr(0, 16)), from_hex(text.substr(16))};
}

TensorStats stats_from(const Fields& fields) {
  TensorStats stats;
  stats.digest = decoded_digest(fields.text("digest"));
  stats.n = fields.count("n");
  stats.measured = fields.has("l2");
  if (!stats.measured) return stats;
  stats.nan = fields.count("nan");
  stats.inf = fields.count("inf");
  stats.zeros = fields.count("zeros");
  stats.l1 = fields.real("l1");
  stats.l2 = fields.real("l2");
  stats.max_abs = fields.real("max_abs");
  stats.min = fields.real("min");
  stats.max = fields.real("max");
  stats.has_sketch = fields.has("sketch");
  if (stats.has_sketch) stats.sketch = decoded_sketch(fields.text("sketch"));
  return stats;
}

std::vector<std::pair<std::string, std::string>> pairs_from(const std::vector<std::string>& flat) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& entry : flat) {
    const auto equals = entry.find('=');
    if (equals == std::string::npos) continue;
    pairs.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return pairs;
}

int small(std::int64_t value, std::string_view key) {
  if (value < 0 || value > 1'000'000) throw std::runtime_error(std::string(key) + " out of range");
  return static_cast<int>(value);
}

HelloRecord hello_from(const Fields& fields) {
  HelloRecord record;
  record.schema = fields.text("schema");
  record.run = fields.text("run");
  record.world = fields.text("world");
  record.role = fields.text_or("role", record.role);
  record.rank = small(fields.integer("rank"), "rank");
  record.restart = small(fields.integer_or("restart", 0), "restart");
  record.world_size = small(fields.integer("world_size"), "world_size");
  record.local_rank = small(fields.integer_or("local_rank", record.rank), "local_rank");
  record.host = fields.text_or("host", "");
  record.pid = fields.integer_or("pid", 0);
  record.producer = fields.text_or("producer", "");
  record.backend = fields.text_or("backend", "");
  record.device = fields.text_or("device", "");
  record.seed = fields.count_or("seed", 0);
  record.versions = pairs_from(fields.texts("versions"));
  record.env = pairs_from(fields.texts("env"));
  return record;
}

template <typename T>
void read_moment(const Fields& fields, T& record) {
  record.step = fields.integer_or("step", 0);
  record.micro = fields.integer_or("micro", 0);
  if (record.step < 0 || record.micro < 0) throw std::runtime_error("step or micro is negative");
}

TensorRecord tensor_from(const Fields& fields) {
  TensorRecord record;
  read_moment(fields, record);
  record.stage = fields.named<Stage>("stage", stage_from_name);
  record.kind = fields.named<TensorKind>("kind", kind_from_name);
  record.model = fields.text("model");
  record.name = fields.text("name");
  record.shape = fields.integers("shape");
  record.dtype = dtype_from_name(fields.text("dtype")).value_or(DType::other);
  record.layout = fields.text_or("layout", "dense");
  if (record.layout == "shard") {
    record.shard = ShardPlace{fields.count("offset"), fields.integers("global_shape")};
  }
  record.state = fields.named<TensorState>("state", state_from_name);
  const bool readable =
      record.state != TensorState::absent && record.state != TensorState::unreadable;
  if (readable) record.stats = stats_from(fields);
  record.requires_grad = fields.flag("requires_grad");
  record.tied_to = fields.text_or("tied_to", "");
  return record;
}

GroupRecord group_from(const Fields& fields) {
  GroupRecord record{fields.text("name"), {}};
  for (const std::int64_t rank : fields.integers("ranks")) {
    record.ranks.push_back(small(rank, "ranks"));
  }
  return record;
}

WrapperRecord wrapper_from(const Fields& fields) {
  WrapperRecord record;
  record.model = fields.text("model");
  record.kind = fields.text("kind");
  record.group = fields.text_or("group", "");
  record.reduce = fields.text_or("reduce", record.reduce);
  record.divide = fields.real_or("divide", 0);
  record.wire_dtype = fields.text_or("wire_dtype", "");
  record.hook = fields.text_or("hook", "");
  record.ignored = fields.texts("ignored");
  record.buffers = fields.text_or("buffers", record.buffers);
  record.find_unused = fields.flag("find_unused").value_or(false);
  record.static_graph = fields.flag("static_graph").value_or(false);
  record.bucket_view = fields.flag("bucket_view").value_or(false);
  record.shards = fields.flag("shards").value_or(false);
  return record;
}

MarkRecord mark_from(const Fields& fields) {
  MarkRecord record;
  read_moment(fields, record);
  record.stage = fields.named<Stage>("stage", stage_from_name);
  record.model = fields.text("model");
  record.tensors = fields.count("tensors");
  return record;
}

Record event_from(const Fields& fields) {
  const std::optional<EventType> type = event_from_name(fields.text("event"));
  if (!type) return UnknownRecord{};
  EventRecord record;
  record.type = *type;
  read_moment(fields, record);
  record.model = fields.text_or("model", "");
  record.phase = fields.text_or("phase", "");
  record.digest = fields.text_or("digest", "");
  record.armed = fields.flag("armed");
  record.needs_finalize = fields.flag("needs_finalize");
  record.grad_mode = fields.flag("grad_mode");
  record.no_sync = fields.flag("no_sync");
  record.site = fields.text_or("site", "");
  record.op = fields.text_or("op", "");
  record.group = fields.text_or("group", "");
  record.reduce = fields.text_or("reduce", "");
  record.dtype = fields.text_or("dtype", "");
  record.result_dtype = fields.text_or("result_dtype", "");
  record.autocast = fields.flag("autocast");
  record.classes = fields.count_or("classes", 0);
  record.bytes = fields.count_or("bytes", 0);
  record.optimizer = fields.text_or("optimizer", "");
  record.names = fields.texts("names");
  const bool may_be_none = *type == EventType::collective;  // of others nobody knows what is meant
  if (record.names.empty() && fields.is_list("names") && !may_be_none) {
    throw std::runtime_error("names is an empty list; all are written \"all\"");
  }
  record.skipped = fields.flag("skipped").value_or(false);
  record.norm = fields.real_or("norm", 0);
  record.max_norm = fields.real_or("max_norm", 0);
  record.scale = fields.real_or("scale", 0);
  record.error_type = fields.text_or("error_type", "");
  record.text = fields.text_or("text", "");
  return record;
}

PayloadRecord payload_from(const Fields& fields) {
  PayloadRecord record;
  read_moment(fields, record);
  record.stage = fields.named<Stage>("stage", stage_from_name);
  record.file = fields.text("file");
  record.names = fields.texts("names");
  record.bytes = fields.count_or("bytes", 0);
  record.truncated = fields.flag("truncated").value_or(false);
  return record;
}

LogProbRecord log_probs_from(const Fields& fields) {
  LogProbRecord record;
  read_moment(fields, record);
  record.name = fields.text("name");
  record.source = fields.text_or("source", "");
  record.file = fields.text("file");
  record.keys = fields.texts("keys");
  record.bytes = fields.count_or("bytes", 0);
  record.digest = fields.text_or("digest", "");
  record.aliased = fields.flag("aliased").value_or(false);
  if (!fields.is_null("updates")) record.updates = fields.integer("updates");
  if (record.updates.value_or(0) < 0) throw std::runtime_error("updates is negative");
  record.text = fields.text_or("text", "");
  return record;
}

Record record_from(const Fields& fields) {
  const std::string type = fields.text("type");
  if (type == "tensor") return tensor_from(fields);
  if (type == "event") return event_from(fields);
  if (type == "mark") return mark_from(fields);
  if (type == "hello") return hello_from(fields);
  if (type == "group") return group_from(fields);
  if (type == "wrapper") return wrapper_from(fields);
  if (type == "payload") return payload_from(fields);
  if (type == "logprob") return log_probs_from(fields);
  if (type == "bye") {
    return ByeRecord{static_cast<int>(fields.integer("status")), fields.count("lines")};
  }
  return UnknownRecord{};
}

}  // namespace

struct LineParser::State {
  simdjson::dom::parser parser;
};

LineParser::LineParser() : state_(std::make_unique<State>()) {}
LineParser::~LineParser() = default;
LineParser::LineParser(LineParser&& other) noexcept = default;

ParsedLine LineParser::parse(std::string_view line) {
  element root;
  const auto error = state_->parser.parse(line.data(), line.size()).get(root);
  if (error != simdjson::SUCCESS) {
    throw std::runtime_error(std::string("not JSON: ") + simdjson::error_message(error));
  }
  if (!root.is_object()) throw std::runtime_error("not a JSON object");
  const Fields fields(root);
  const std::uint64_t sequence = fields.count("seq");
  return {record_from(fields), sequence};
}

}  // namespace gradcheck
