// SPDX-License-Identifier: Apache-2.0
#include "evidence/write/lines.h"

#include <string_view>
#include <utility>

#include "evidence/write/json_line.h"

namespace gradcheck {
namespace {

// Free text may grow sixfold when it is escaped, and the line must stay below kMaxLineBytes.
constexpr std::size_t kMaxText = std::size_t{8} * 1024;

std::string_view shortened(std::string_view text) { return text.substr(0, kMaxText); }

JsonLine begin(std::string_view type, std::uint64_t sequence) {
  JsonLine line;
  line.text("type", type).count("seq", sequence);
  return line;
}

void put_moment(JsonLine& line, std::int64_t step, std::int64_t micro) {
  line.integer("step", step).integer("micro", micro);
}

void put_text(JsonLine& line, std::string_view key, std::string_view value) {
  if (!value.empty()) line.text(key, shortened(value));
}

void put_flag(JsonLine& line, std::string_view key, const std::optional<bool>& value) {
  if (value) line.boolean(key, *value);
}

void put_pairs(JsonLine& line, std::string_view key,
               const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::vector<std::string> flat;
  for (const auto& [name, value] : pairs) flat.emplace_back(name).append("=").append(value);
  line.texts(key, flat);
}

void put_stats(JsonLine& line, const TensorStats& stats) {
  line.text("digest", to_hex(stats.digest)).count("n", stats.n);
  if (!stats.measured) return;
  line.count("nan", stats.nan).count("inf", stats.inf).count("zeros", stats.zeros);
  line.real("l1", stats.l1).real("l2", stats.l2).real("max_abs", stats.max_abs);
  line.real("min", stats.min).real("max", stats.max);
  if (stats.has_sketch) line.doubles_base64("sketch", stats.sketch);
}

void put_collective(JsonLine& line, const EventRecord& event) {
  if (event.type != EventType::collective && event.type != EventType::buffers_broadcast) return;
  line.count("bytes", event.bytes);
  put_text(line, "op", event.op);
  put_text(line, "group", event.group);
  put_text(line, "reduce", event.reduce);
  put_text(line, "dtype", event.dtype);
  if (!event.names.empty()) line.texts("names", event.names);
}

void put_log_softmax(JsonLine& line, const EventRecord& event) {
  if (event.type != EventType::log_softmax) return;
  put_text(line, "op", event.op);
  put_text(line, "dtype", event.dtype);
  put_text(line, "result_dtype", event.result_dtype);
  put_flag(line, "autocast", event.autocast);
  line.count("classes", event.classes);
}

// Events about gradients of which all are meant unless some are named.
bool may_mean_all(EventType type) {
  return type == EventType::optimizer_step || type == EventType::grad_cleared ||
         type == EventType::clip || type == EventType::unscale;
}

void put_optimizer(JsonLine& line, const EventRecord& event) {
  if (may_mean_all(event.type)) {
    if (event.names.empty()) {
      line.text("names", "all");
    } else {
      line.texts("names", event.names);
    }
  }
  if (event.type == EventType::optimizer_step) line.boolean("skipped", event.skipped);
  put_text(line, "optimizer", event.optimizer);
  if (event.type == EventType::clip) {
    line.real("norm", event.norm).real("max_norm", event.max_norm);
  }
  if (event.type == EventType::unscale) line.real("scale", event.scale);
}

// Lists that would break the line limit are left out: the payload file holds its keys too.
bool fits(const std::vector<std::string>& names) {
  std::size_t bytes = 0;
  for (const std::string& name : names) bytes += name.size() + 3;
  return bytes < kMaxLineBytes / 2;
}

}  // namespace

std::string to_line(const HelloRecord& record, std::uint64_t sequence) {
  JsonLine line = begin("hello", sequence);
  line.text("schema", record.schema).text("run", record.run).text("world", record.world);
  line.text("role", record.role).integer("rank", record.rank).integer("restart", record.restart);
  line.integer("world_size", record.world_size).integer("local_rank", record.local_rank);
  line.text("host", record.host).integer("pid", record.pid).text("producer", record.producer);
  line.text("backend", record.backend).text("device", record.device).count("seed", record.seed);
  put_pairs(line, "versions", record.versions);
  put_pairs(line, "env", record.env);
  return line.finish();
}

std::string to_line(const TensorRecord& record, std::uint64_t sequence) {
  JsonLine line = begin("tensor", sequence);
  put_moment(line, record.step, record.micro);
  line.text("stage", name_of(record.stage)).text("kind", name_of(record.kind));
  line.text("model", record.model).text("name", record.name);
  line.integers("shape", record.shape).text("dtype", name_of(record.dtype));
  line.text("layout", record.layout).text("state", name_of(record.state));
  if (record.shard) {
    line.count("offset", record.shard->offset);
    line.integers("global_shape", record.shard->global_shape);
  }
  const bool readable =
      record.state != TensorState::absent && record.state != TensorState::unreadable;
  if (readable) put_stats(line, record.stats);
  put_flag(line, "requires_grad", record.requires_grad);
  put_text(line, "tied_to", record.tied_to);
  return line.finish();
}

std::string to_line(const GroupRecord& record, std::uint64_t sequence) {
  JsonLine line = begin("group", sequence);
  line.text("name", record.name).integers("ranks", record.ranks);
  return line.finish();
}

std::string to_line(const WrapperRecord& record, std::uint64_t sequence) {
  JsonLine line = begin("wrapper", sequence);
  line.text("model", record.model).text("kind", record.kind).text("group", record.group);
  line.text("reduce", record.reduce).real("divide", record.divide);
  line.text("wire_dtype", record.wire_dtype).text("hook", record.hook);
  line.texts("ignored", record.ignored).text("buffers", record.buffers);
  line.boolean("find_unused", record.find_unused).boolean("static_graph", record.static_graph);
  line.boolean("bucket_view", record.bucket_view).boolean("shards", record.shards);
  return line.finish();
}

std::string to_line(const MarkRecord& record, std::uint64_t sequence) {
  JsonLine line = begin("mark", sequence);
  put_moment(line, record.step, record.micro);
  line.text("stage", name_of(record.stage)).text("model", record.model);
  line.count("tensors", record.tensors);
  return line.finish();
}

std::string to_line(const EventRecord& record, std::uint64_t sequence) {
  JsonLine line = begin("event", sequence);
  line.text("event", name_of(record.type));
  put_moment(line, record.step, record.micro);
  put_text(line, "model", record.model);
  put_text(line, "phase", record.phase);
  put_text(line, "digest", record.digest);
  put_flag(line, "armed", record.armed);
  put_flag(line, "needs_finalize", record.needs_finalize);
  put_flag(line, "grad_mode", record.grad_mode);
  put_flag(line, "no_sync", record.no_sync);
  put_text(line, "site", record.site);
  put_collective(line, record);
  put_log_softmax(line, record);
  put_optimizer(line, record);
  put_text(line, "error_type", record.error_type);
  put_text(line, "text", record.text);
  return line.finish();
}

std::string to_line(const PayloadRecord& record, std::uint64_t sequence) {
  JsonLine line = begin("payload", sequence);
  put_moment(line, record.step, record.micro);
  line.text("stage", name_of(record.stage)).text("file", record.file);
  if (fits(record.names)) line.texts("names", record.names);
  line.count("bytes", record.bytes).boolean("truncated", record.truncated);
  return line.finish();
}

std::string to_line(const LogProbRecord& record, std::uint64_t sequence) {
  JsonLine line = begin("logprob", sequence);
  put_moment(line, record.step, record.micro);
  line.text("name", record.name).text("source", record.source).text("file", record.file);
  line.texts("keys", record.keys).count("bytes", record.bytes);
  put_text(line, "digest", record.digest);
  line.boolean("aliased", record.aliased);
  if (record.updates) line.integer("updates", *record.updates);
  put_text(line, "text", record.text);
  return line.finish();
}

std::string to_line(const ByeRecord& record, std::uint64_t sequence) {
  JsonLine line = begin("bye", sequence);
  line.integer("status", record.status).count("lines", record.lines);
  return line.finish();
}

}  // namespace gradcheck
