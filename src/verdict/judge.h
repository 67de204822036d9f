// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/evidence_table.h"
#include "model/log_prob_set.h"
#include "model/outcome.h"
#include "model/payload_view.h"
#include "model/plan.h"
#include "model/report.h"
#include "model/scenario.h"

namespace gradcheck {

struct JudgeInput {
  const EvidenceTable& table;
  const std::vector<PlanRule>& rules;  // what the scenario declares
  const PayloadViews& payloads;
  std::int64_t steps = 1;  // that the program was asked to run
  std::int64_t micro_steps = 1;
  // Ranks of our own lab: one model, every step and micro-step is recorded, collectives are all
  // visible. False: a job, of whose steps some are recorded, and each model counts its own.
  bool native = true;
  bool all_tensors = false;  // -v: a row for every tensor
  // Of the program that started the ranks, where that is known: ranks that all end without a
  // goodbye have complete evidence only if it is 0.
  std::optional<int> program_status = std::nullopt;
  std::span<const LogProbSet> log_probs = {};  // of a job that handed some over
};

// Evidence to answer: plan, ladder, audit, findings, causes, outcome (verdicts.md). Pure.
// Leaves the fields that the runner knows (name, expected, verdict, reason, backend, dtype, seed,
// duration) at their defaults. Never `consistent` on missing evidence.
ArmReport judge(const JudgeInput& input);

// What the front should ask of every rank at the end of `step`, worst tensors first, so that
// distances are exact and the audit is elementwise: `local` of every micro-step and `reduced` of
// the last. `budget_bytes` is for one rank and all wants together.
std::vector<Want> wanted_payloads(const EvidenceTable& table, std::int64_t step,
                                  std::uint64_t budget_bytes);

// The same of one model of a job, which has its own step numbers: `reduced` at the end of its
// `step` of the tensors that differ, worst first, and with `exact` also their `local` of every
// micro-step. Empty where none differs.
std::vector<Want> wanted_payloads_of_model(const EvidenceTable& table, std::string_view model,
                                           std::int64_t step, std::uint64_t budget_bytes,
                                           bool exact);

// How an arm is held against what it must show.
struct ExpectationContext {
  int ranks = 2;
  std::string dtype;
  bool overridden = false;             // options changed the program: bands are shown, not demanded
  Severity fail_on = Severity::error;  // `warning`: a consistent arm with a warning fails
};

// Fills `expected`, `verdict` and `reason` of an arm whose evidence has been judged, by the table
// of design.md §6.
void apply_expectation(ArmReport& arm, const Expect& expect, const ExpectationContext& context);

// True if the arm expects ranks to disagree although only one runs: agreement cannot be tested, so
// the runner skips the arm before it starts. Log-probs need no second rank.
bool needs_agreement(const Expect& expect, const ExpectationContext& context);

}  // namespace gradcheck
