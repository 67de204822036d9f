// SPDX-License-Identifier: Apache-2.0
#include "model/json/expect.h"

#include <nlohmann/json.hpp>

#include "model/expectation.h"
#include "model/finding.h"

namespace gradcheck {
namespace {

std::vector<int> ranks_from(const Node& node, std::int64_t min, std::int64_t max) {
  const auto values = node.integers(min, max);
  return {values.begin(), values.end()};
}

std::string code_from(const Node& node) {
  std::vector<std::string> texts;
  for (const CodeInfo& info : all_codes()) texts.push_back(code_text(info.code));
  const std::string text = node.text();
  if (code_from_text(text)) return text;
  node.fail("there is no code " + in_quotes(text) + did_you_mean(text, texts));
}

std::string cause_from(const Node& node) {
  std::vector<std::string_view> names;
  for (const CauseInfo& info : all_causes()) names.push_back(info.name);
  return node.one_of(names);
}

template <typename Decode>
std::vector<std::string> list_of(const Node& node, Decode decode) {
  std::vector<std::string> values;
  for (const Node& item : node.items(1)) values.push_back(decode(item));
  return values;
}

RaisesExpectation raises_from(const Node& node) {
  const ObjectNode object(node, {"text", "ranks"});
  RaisesExpectation raises;
  read_text(object, "text", raises.text);
  read(object, "ranks", raises.ranks,
       [](const Node& ranks) { return ranks_from(ranks, 0, kMaxRanks - 1); });
  return raises;
}

std::optional<double> limit_from(const Node& node) {
  const double limit = node.number();
  if (limit < 0) node.fail("must not be negative");
  return limit;
}

Band band_from(const Node& node) {
  const ObjectNode object(node, {"min", "max"});
  if (object.empty()) node.fail("needs 'min' or 'max'");
  Band band;
  read(object, "min", band.min, limit_from);
  read(object, "max", band.max, limit_from);
  return band;
}

LogProbExpectation log_probs_from(const Node& node) {
  const ObjectNode object(node,
                          {"outcome", "bitwise", "cause", "max_abs", "mean_abs", "reference"});
  if (object.empty()) node.fail("demands nothing");
  LogProbExpectation expect;
  read(object, "outcome", expect.outcome,
       [](const Node& word) { return enum_up_to(word, Outcome::inconclusive); });
  read(object, "bitwise", expect.bitwise, [](const Node& flag) { return flag.boolean(); });
  read(object, "cause", expect.cause, cause_from);
  read(object, "max_abs", expect.max_abs, band_from);
  read(object, "mean_abs", expect.mean_abs, band_from);
  read(object, "reference", expect.reference, band_from);
  return expect;
}

Expect fields_from(const ObjectNode& object) {
  const auto count = [](const Node& node) { return node.integer(0, kMaxJsonInteger); };
  Expect expect;
  read(object, "outcome", expect.outcome,
       [](const Node& word) { return enum_up_to(word, Outcome::error); });  // skipped: no demand
  read(object, "differed", expect.differed, count);
  read(object, "of", expect.of, count);
  read(object, "wrong", expect.wrong, count);
  read(object, "codes", expect.codes, [](const Node& node) { return list_of(node, code_from); });
  read(object, "causes", expect.causes, [](const Node& node) { return list_of(node, cause_from); });
  read(object, "raises", expect.raises, raises_from);
  read(object, "max_abs", expect.max_abs, band_from);
  read(object, "logp", expect.logp, log_probs_from);
  if (!demands_something(expect)) object.node().fail("demands nothing");
  return expect;
}

Condition condition_from(const ObjectNode& object) {
  if (!object.find("ranks") && !object.find("dtype")) object.node().fail("needs ranks or dtype");
  Condition condition;
  read(object, "ranks", condition.ranks,
       [](const Node& node) { return ranks_from(node, 1, kMaxRanks); });
  read(object, "dtype", condition.dtypes, [](const Node& node) {
    return list_of(node, [](const Node& word) { return word.one_of(native_dtypes()); });
  });
  return condition;
}

void refuse_contradiction(const Node& node, const Expect& expect) {
  if (const std::string problem = contradiction_in(expect); !problem.empty()) node.fail(problem);
}

ExpectOverride override_from(const Node& node, const Expect& base) {
  const ObjectNode object(node, {"ranks", "dtype", "expect"});
  const Node fields = object.require("expect");
  const ObjectNode expect(fields, {"outcome", "differed", "of", "wrong", "codes", "causes",
                                   "raises", "max_abs", "logp"});
  ExpectOverride refinement{condition_from(object), fields_from(expect)};
  refuse_contradiction(fields, overwritten(base, refinement.expect));
  return refinement;
}

}  // namespace

Expect expect_from(const Node& node) {
  const ObjectNode object(node, {"outcome", "differed", "of", "wrong", "codes", "causes", "raises",
                                 "max_abs", "logp", "when"});
  Expect expect = fields_from(object);
  refuse_contradiction(node, expect);
  read(object, "when", expect.when, [&expect](const Node& list) {
    std::vector<ExpectOverride> when;
    for (const Node& item : list.items(1)) when.push_back(override_from(item, expect));
    return when;
  });
  return expect;
}

}  // namespace gradcheck
