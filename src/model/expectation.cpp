// SPDX-License-Identifier: Apache-2.0
#include "model/expectation.h"

#include <algorithm>
#include <utility>

#include "model/finding.h"
#include "model/zygote.h"

namespace gradcheck {
namespace {

template <typename T>
void overwrite(std::optional<T>& field, const std::optional<T>& change) {
  if (change) field = change;
}

void overwrite(std::vector<std::string>& field, const std::vector<std::string>& change) {
  if (!change.empty()) field = change;
}

bool admits(const auto& list, const auto& value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

// Findings of these codes make an arm inconsistent or inconclusive, so it cannot be consistent.
// GC8xx may stand beside a consistent arm as notes (verdicts.md §6), GC605 where a job
// hands over log-probs that are no test.
const std::string* code_against_consistency(const Expect& expect) {
  for (const std::string& text : expect.codes) {
    const CodeInfo* info = find_code(code_from_text(text).value_or(0));
    const bool rules_out = info && info->severity == Severity::error && info->code < 800;
    if (rules_out && info->code != 605) return &text;
  }
  return nullptr;
}

std::string contradiction_in_counts(const Expect& expect) {
  const std::int64_t differed = expect.differed.value_or(0);
  const std::int64_t wrong = expect.wrong.value_or(0);
  if (!expect.of || differed + wrong <= *expect.of) return "";
  return "differed " + std::to_string(differed) + " and wrong " + std::to_string(wrong) +
         " are more than 'of' " + std::to_string(*expect.of) + "; a tensor is counted in one only";
}

std::string contradiction_in_band(const std::optional<Band>& band, std::string_view key) {
  const bool empty = band && band->min && band->max && *band->min > *band->max;
  return empty ? std::string(key) + ": min is above max" : "";
}

std::string contradiction_in_log_probs(const Expect& expect) {
  if (!expect.logp) return "";
  const LogProbExpectation& logp = *expect.logp;
  for (const auto& [band, key] :
       {std::pair(&logp.max_abs, "logp: max_abs"), std::pair(&logp.mean_abs, "logp: mean_abs"),
        std::pair(&logp.reference, "logp: reference")}) {
    if (std::string problem = contradiction_in_band(*band, key); !problem.empty()) return problem;
  }
  const bool wrong = logp.outcome == Outcome::inconsistent;
  if (wrong && logp.bitwise == true) return "logp: what is equal bit for bit is not inconsistent";
  if (wrong && expect.outcome == Outcome::consistent) {
    return "an arm with inconsistent log-probs is never consistent";
  }
  return "";
}

std::string contradiction_of_consistent(const Expect& expect) {
  if (expect.differed.value_or(0) > 0) return "a consistent arm has no tensor that differed";
  if (expect.wrong.value_or(0) > 0) return "a consistent arm has no tensor that is wrong";
  if (const std::string* code = code_against_consistency(expect)) {
    return "an arm with " + *code + " is never consistent";
  }
  return "";
}

std::string misfit_of_rank(const std::string& what, int rank, int ranks) {
  if (rank < ranks) return "";
  return what + " rank " + std::to_string(rank) + ", but ranks are 0 to " +
         std::to_string(ranks - 1);
}

std::string misfit_of_fault(const Fault& fault, int ranks, std::int64_t steps) {
  if (fault.step >= steps) {
    return "its fault is in step " + std::to_string(fault.step) + ", but the last step is " +
           std::to_string(steps - 1);
  }
  return misfit_of_rank("its fault is on", fault.rank, ranks);
}

}  // namespace

bool holds(const Condition& condition, int ranks, std::string_view dtype) {
  return admits(condition.ranks, ranks) && admits(condition.dtypes, dtype);
}

Expect overwritten(const Expect& base, const Expect& change) {
  const bool another_outcome = change.outcome && change.outcome != base.outcome;
  Expect result = another_outcome ? Expect{} : base;
  result.when.clear();
  overwrite(result.outcome, change.outcome);
  overwrite(result.differed, change.differed);
  overwrite(result.of, change.of);
  overwrite(result.wrong, change.wrong);
  overwrite(result.codes, change.codes);
  overwrite(result.causes, change.causes);
  overwrite(result.raises, change.raises);
  overwrite(result.max_abs, change.max_abs);
  overwrite(result.as_reference, change.as_reference);
  overwrite(result.logp, change.logp);
  return result;
}

Expect expected_for(const Expect& expect, int ranks, std::string_view dtype) {
  Expect result = overwritten(expect, {});
  for (const ExpectOverride& refinement : expect.when) {
    if (!holds(refinement.condition, ranks, dtype)) continue;
    result = overwritten(result, refinement.expect);
  }
  return result;
}

bool demands_something(const Expect& expect) {
  return expect.outcome || expect.differed || expect.of || expect.wrong || expect.raises ||
         expect.max_abs || expect.as_reference || expect.logp || !expect.codes.empty() ||
         !expect.causes.empty();
}

std::string contradiction_in(const Expect& expect) {
  if (expect.outcome == Outcome::skipped) return "no arm is expected to be skipped";
  if (expect.raises && expect.outcome != Outcome::raised) {
    return "'raises' needs the outcome 'raised'";
  }
  std::string problem = contradiction_in_band(expect.max_abs, "max_abs");
  if (problem.empty()) problem = contradiction_in_log_probs(expect);
  if (problem.empty()) problem = contradiction_in_counts(expect);
  if (!problem.empty()) return problem;
  return expect.outcome == Outcome::consistent ? contradiction_of_consistent(expect) : "";
}

std::string misfit_of(const Arm& arm, int scenario_ranks, std::int64_t steps) {
  const int ranks = arm.ranks.value_or(scenario_ranks);
  const std::string dtype = arm.program.native ? arm.program.native->dtype : "";
  const Expect expect = expected_for(arm.expect, ranks, dtype);
  std::string problem;
  if (arm.program.native && ranks > kMaxForkRanks) {
    return "native programs run on at most " + std::to_string(kMaxForkRanks) + " ranks";
  }
  if (arm.program.native && arm.program.native->fault) {
    problem = misfit_of_fault(*arm.program.native->fault, ranks, steps);
  }
  if (!problem.empty() || !expect.raises || expect.raises->ranks.empty()) return problem;
  return misfit_of_rank("it expects an exception on", std::ranges::max(expect.raises->ranks),
                        ranks);
}

std::string misfit_of(const PlanRule& rule, int ranks) {
  if (rule.group.empty()) return "";
  return misfit_of_rank("its group has", std::ranges::max(rule.group), ranks);
}

}  // namespace gradcheck
