// SPDX-License-Identifier: Apache-2.0
#include "model/json/plan_file.h"

#include <nlohmann/json.hpp>

namespace gradcheck {
namespace {

using Json = nlohmann::ordered_json;

Json rule_of(const PlanLine& line, int world_size) {
  Json rule = {{"model", line.model}, {"tensor", line.name}};
  if (line.kind == TensorKind::buffer) {
    rule["buffers"] = name_of(line.buffers);
  } else {
    rule["role"] = name_of(line.role);
  }
  const bool reduces = line.kind == TensorKind::grad && line.role == Role::shared;
  if (reduces && line.reduction != Reduction::unknown) {
    rule["reduction"] = name_of(line.reduction);
    if (line.reduction == Reduction::factor) rule["factor"] = line.factor;
  }
  const bool everybody = static_cast<int>(line.group.size()) == world_size;
  if (!line.group.empty() && !everybody) rule["group"] = line.group;
  if (line.wire_dtype) rule["wire_dtype"] = name_of(*line.wire_dtype);
  return rule;
}

bool is_declared(const PlanLine& line) {
  if (line.kind == TensorKind::buffer) return line.buffers != BufferPolicy::undeclared;
  return line.role != Role::undeclared;
}

}  // namespace

std::string plan_to_json(const std::vector<PlanLine>& lines, int world_size) {
  std::string text;
  for (const PlanLine& line : lines) {
    if (!is_declared(line)) continue;
    text += text.empty() ? "[\n  " : ",\n  ";
    text += rule_of(line, world_size).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return text.empty() ? "[]\n" : text + "\n]\n";
}

}  // namespace gradcheck
