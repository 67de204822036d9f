// SPDX-License-Identifier: Apache-2.0
#include "model/json/plan.h"

#include <nlohmann/json.hpp>

namespace gradcheck {
namespace {

std::vector<int> group_from(const Node& node) {
  const auto ranks = node.integers(0, kMaxRanks - 1);
  std::vector<int> group(ranks.begin(), ranks.end());
  std::sort(group.begin(), group.end());
  return group;
}

void check(const ObjectNode& object, const PlanRule& rule) {
  const bool declares =
      rule.role || rule.reduction || rule.wire_dtype || rule.buffers || !rule.group.empty();
  if (!declares) object.node().fail("declares nothing");
  const bool by_factor = rule.reduction == Reduction::factor;
  if (by_factor) object.require("factor");
  const auto factor = object.find("factor");
  if (factor && !by_factor) factor->fail("needs the reduction 'factor'");
}

}  // namespace

PlanRule plan_rule_from(const Node& node) {
  const ObjectNode object(
      node, {"model", "tensor", "role", "reduction", "factor", "group", "wire_dtype", "buffers"});
  PlanRule rule;
  read_text(object, "model", rule.model);
  read_text(object, "tensor", rule.tensor);
  read(object, "role", rule.role,
       [](const Node& word) { return enum_up_to(word, Role::undeclared); });
  read(object, "reduction", rule.reduction,
       [](const Node& word) { return enum_up_to(word, Reduction::unknown); });
  read_number(object, "factor", rule.factor);
  read(object, "group", rule.group, group_from);
  read(object, "wire_dtype", rule.wire_dtype,
       [](const Node& word) { return enum_up_to(word, DType::bf16); });  // the measured ones
  read(object, "buffers", rule.buffers,
       [](const Node& word) { return enum_up_to(word, BufferPolicy::undeclared); });
  check(object, rule);
  return rule;
}

std::vector<PlanRule> plan_from(const Node& node) {
  std::vector<PlanRule> rules;
  for (const Node& item : node.items()) rules.push_back(plan_rule_from(item));
  return rules;
}

}  // namespace gradcheck
