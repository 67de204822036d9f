// SPDX-License-Identifier: Apache-2.0
#include "model/json/control.h"

#include <nlohmann/json.hpp>

#include "model/errors.h"
#include "model/json/matrix.h"
#include "model/json/native_program.h"

namespace gradcheck {
namespace {

Json to_json(const RunRecord& run) {
  return {{"type", "run"},
          {"run", run.run},
          {"directory", run.directory},
          {"rank", run.rank},
          {"world_size", run.world_size},
          {"steps", run.steps},
          {"micro_steps", run.micro_steps},
          {"seed", run.seed},
          {"rendezvous_timeout_s", run.rendezvous_timeout_s},
          {"collective_timeout_s", run.collective_timeout_s},
          {"program", gradcheck::to_json(run.program)}};
}

Json to_json(const Want& want) {
  return {{"type", "want"},      {"step", want.step},
          {"micro", want.micro}, {"stage", name_of(want.stage)},
          {"names", want.names}, {"budget_bytes", want.budget_bytes}};
}

Json to_json(const GoRecord& go) { return {{"type", "go"}, {"step", go.step}}; }

RunRecord run_from(const Node& node) {
  const ObjectNode object(
      node, {"type", "run", "directory", "rank", "world_size", "steps", "micro_steps", "seed",
             "rendezvous_timeout_s", "collective_timeout_s", "program"});
  RunRecord run;
  run.run = object.require("run").text();
  run.directory = object.require("directory").text();
  run.world_size = ranks_from(object.require("world_size"));
  run.rank = static_cast<int>(object.require("rank").integer(0, run.world_size - 1));
  run.steps = object.require("steps").integer(1, kMaxJsonInteger);
  run.micro_steps = object.require("micro_steps").integer(1, kMaxJsonInteger);
  run.seed = seed_from(object.require("seed"));
  run.rendezvous_timeout_s = object.require("rendezvous_timeout_s").number();
  run.collective_timeout_s = object.require("collective_timeout_s").number();
  run.program = native_program_from(object.require("program"));
  return run;
}

Want want_from(const Node& node) {
  const ObjectNode object(node, {"type", "step", "micro", "stage", "names", "budget_bytes"});
  Want want;
  want.step = object.require("step").integer(0, kMaxJsonInteger);
  want.micro = object.require("micro").integer(0, kMaxJsonInteger);
  want.stage = enum_up_to(object.require("stage"), Stage::next_forward);
  want.names = object.require("names").texts();
  want.budget_bytes =
      static_cast<std::uint64_t>(object.require("budget_bytes").integer(0, kMaxJsonInteger));
  return want;
}

GoRecord go_from(const Node& node) {
  const ObjectNode object(node, {"type", "step"});
  return {object.require("step").integer(0, kMaxJsonInteger)};
}

ControlRecord record_from(const Node& node) {
  constexpr std::string_view kTypes[] = {"run", "want", "go"};
  const auto type = node.json().is_object() ? node.json().find("type") : node.json().end();
  if (type == node.json().end()) node.fail("is no record: needs a type");
  const std::string word = node.child("type", *type).one_of(kTypes);
  if (word == "run") return run_from(node);
  if (word == "want") return want_from(node);
  return go_from(node);
}

}  // namespace

std::string control_to_line(const ControlRecord& record) {
  return std::visit([](const auto& one) { return to_json(one).dump(); }, record);
}

ControlRecord control_from_line(std::string_view line) {
  try {
    const Json document = parse_strictly(line, "control record");
    return record_from(Node(document, "control record"));
  } catch (const ScenarioError& error) {
    throw InfrastructureError(error.what());
  }
}

}  // namespace gradcheck
