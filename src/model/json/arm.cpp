// SPDX-License-Identifier: Apache-2.0
#include "model/json/arm.h"

#include <nlohmann/json.hpp>

#include "model/expectation.h"
#include "model/json/expect.h"
#include "model/json/native_program.h"

namespace gradcheck {
namespace {

CommandProgram command_from(const Node& node) {
  CommandProgram command;
  command.argv = node.texts(1);
  return command;
}

void take_python(const Node& node, CommandProgram& command) {
  constexpr std::string_view kLaunch[] = {"ranks", "self"};
  const ObjectNode object(node, {"requires", "launch", "environment"});
  command.requirements = object.require("requires").texts();
  const auto launch = object.find("launch");
  command.starts_its_ranks = launch && launch->one_of(kLaunch) == "self";
  read_text(object, "environment", command.environment);
}

Program program_from(const Node& node) {
  const ObjectNode object(node, {"native", "command", "python"});
  Program program;
  read(object, "native", program.native, fitting_program_from);
  read(object, "command", program.command, command_from);
  if (program.native.has_value() == program.command.has_value()) {
    node.fail("needs exactly one of 'native' and 'command'");
  }
  const auto python = object.find("python");
  if (python && !program.command) node.fail("'python' goes with 'command' only");
  if (python) take_python(*python, *program.command);
  return program;
}

// A null in a merge patch removes a key. Removing what is not there is a misspelt key.
void refuse_idle_removals(const Node& change, const Json& target) {
  for (const auto& [key, value] : change.json().items()) {
    const bool present = target.is_object() && target.contains(key);
    const Node place = change.child(key, value);
    if (value.is_object()) refuse_idle_removals(place, present ? target[key] : Json());
    if (!value.is_null() || present) continue;
    std::vector<std::string> keys;
    for (const auto& [known, unused] : target.items()) keys.push_back(known);
    place.fail("the program has no " + in_quotes(key) + " to remove" + did_you_mean(key, keys));
  }
}

// The base program has been decoded before, so whatever is wrong now came with the change, and
// pointers into the merged program are pointers into the change.
Program changed_program(const Node& change, const Json& base) {
  if (!change.json().is_object()) change.fail("must be an object");
  refuse_idle_removals(change, base);
  Json merged = base;
  merged.merge_patch(change.json());
  return program_from(Node(merged, change.file(), change.pointer()));
}

Arm arm_from(const Node& node, const Node& program) {
  const ObjectNode object(node, {"name", "change", "reference", "ranks", "expect"});
  Arm arm;
  arm.name = object.require("name").identifier();
  const auto change = object.find("change");
  arm.program = change ? changed_program(*change, program.json()) : program_from(program);
  read_text(object, "reference", arm.reference);
  read(object, "ranks", arm.ranks,
       [](const Node& ranks) { return static_cast<int>(ranks.integer(1, kMaxRanks)); });
  arm.expect = expect_from(object.require("expect"));
  return arm;
}

const Arm* find_arm(const std::vector<Arm>& arms, std::string_view name) {
  const auto found = std::ranges::find(arms, name, &Arm::name);
  return found == arms.end() ? nullptr : &*found;
}

void refuse_bad_reference(const Node& node, const Arm& arm, const std::vector<Arm>& arms) {
  if (arm.reference.empty()) return;
  const Node place = node.child("reference", node.json()["reference"]);
  if (arm.reference == arm.name) place.fail("an arm cannot be its own reference");
  if (find_arm(arms, arm.reference)) return;
  std::vector<std::string> names;
  for (const Arm& other : arms) names.push_back(other.name);
  place.fail("there is no arm " + in_quotes(arm.reference) + did_you_mean(arm.reference, names));
}

// Weights are held against those of an arm that has run already, in our own lab.
void refuse_bad_comparison(const Node& node, std::size_t index, const std::vector<Arm>& arms) {
  const Arm& arm = arms[index];
  if (arm.ranks && !arm.program.native) {
    node.child("ranks", node.json()["ranks"]).fail("only native programs have ranks an arm");
  }
  if (!arm.expect.as_reference) return;
  const Node place = node.child("expect", node.json()["expect"]);
  const Arm* reference = find_arm(arms, arm.reference);
  if (reference == nullptr) place.fail("'as_reference' needs a 'reference'");
  if (reference >= &arm) place.fail("'as_reference' needs a 'reference' that runs before it");
  if (arm.program.native && reference->program.native) return;
  place.fail("'as_reference' is about native programs");
}

}  // namespace

std::vector<Arm> arms_from(const Node& arms, const Node& program) {
  program_from(program);
  std::vector<Arm> decoded;
  const std::vector<Node> nodes = arms.items(1);
  for (const Node& node : nodes) {
    Arm arm = arm_from(node, program);
    if (find_arm(decoded, arm.name)) node.fail("there are two arms " + in_quotes(arm.name));
    decoded.push_back(std::move(arm));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    refuse_bad_reference(nodes[i], decoded[i], decoded);
    refuse_bad_comparison(nodes[i], i, decoded);
  }
  return decoded;
}

}  // namespace gradcheck
