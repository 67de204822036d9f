// SPDX-License-Identifier: Apache-2.0
#include "model/json/scenario.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/expectation.h"
#include "model/json/arm.h"
#include "model/json/matrix.h"
#include "model/json/plan.h"
#include "model/json/strict.h"

namespace gradcheck {
namespace {

std::string name_from(const Node& node) {
  std::string name = node.identifier();
  const std::string stem = std::filesystem::path(node.file()).stem().string();
  if (name != stem) {
    node.fail(in_quotes(name) + " must be the file's name without .json: " + in_quotes(stem));
  }
  return name;
}

Source source_from(const Node& node) {
  const ObjectNode object(node, {"repo", "pull_request", "file", "line"});
  if (object.empty()) node.fail("must not be empty");
  Source source;
  read_text(object, "repo", source.repo);
  read_integer(object, "pull_request", source.pull_request, 1);
  read_text(object, "file", source.file);
  read_integer(object, "line", source.line, 1);
  return source;
}

std::vector<std::string> needs_from(const Node& node) {
  constexpr std::string_view kNeeds[] = {"gpu", "nccl"};
  std::vector<std::string> needs;
  for (const Node& item : node.items()) needs.push_back(item.one_of(kNeeds));
  return needs;
}

double timeout_from(const Node& node) {
  constexpr double kDay = 86400;
  const double seconds = node.number();
  if (!(seconds > 0 && seconds <= kDay)) node.fail("must be more than 0 and at most 86400 seconds");
  return seconds;
}

void read_description(const ObjectNode& object, Scenario& scenario) {
  read_text(object, "description", scenario.description);
  read(object, "source", scenario.source, source_from);
  read(object, "tags", scenario.tags, [](const Node& node) { return node.texts(); });
}

void read_size(const ObjectNode& object, Scenario& scenario) {
  read(object, "ranks", scenario.ranks, [](const Node& node) { return ranks_from(node); });
  read_integer(object, "steps", scenario.steps, 1);
  read_integer(object, "micro_steps", scenario.micro_steps, 1);
  read(object, "seed", scenario.seed, [](const Node& node) { return seed_from(node); });
  read(object, "needs", scenario.needs, needs_from);
  read(object, "timeout_s", scenario.timeout_s, timeout_from);
}

// Refuses ranks and steps that the scenario, after expansion, does not have.
void refuse_misfits(const Scenario& scenario, const ObjectNode& object) {
  const std::vector<Node> arms = object.require("arms").items();
  for (std::size_t i = 0; i < arms.size(); ++i) {
    const std::string problem = misfit_of(scenario.arms[i], scenario.ranks, scenario.steps);
    if (!problem.empty()) arms[i].fail(problem + " (" + scenario.name + ")");
  }
  for (std::size_t i = 0; i < scenario.plan.size(); ++i) {
    const std::string problem = misfit_of(scenario.plan[i], scenario.ranks);
    if (problem.empty()) continue;
    object.require("plan").items()[i].fail(problem + " (" + scenario.name + ")");
  }
}

}  // namespace

std::vector<Scenario> scenarios_from_json(std::string_view text, const std::string& file) {
  const Json document = parse_strictly(text, file);
  const ObjectNode object(
      Node(document, file),
      {"$schema", "name", "description", "source", "program", "ranks", "steps", "micro_steps",
       "seed", "plan", "arms", "matrix", "needs", "timeout_s", "tags"});
  std::string schema;
  read_text(object, "$schema", schema);
  Scenario scenario;
  scenario.file = file;
  scenario.name = name_from(object.require("name"));
  read_description(object, scenario);
  read_size(object, scenario);
  read(object, "plan", scenario.plan, plan_from);
  scenario.arms = arms_from(object.require("arms"), object.require("program"));
  std::vector<Scenario> all = expanded(scenario, object.find("matrix"));
  for (const Scenario& one : all) refuse_misfits(one, object);
  return all;
}

std::vector<PlanRule> plan_from_json(std::string_view text, const std::string& file) {
  const Json document = parse_strictly(text, file);
  return plan_from(Node(document, file));
}

}  // namespace gradcheck
