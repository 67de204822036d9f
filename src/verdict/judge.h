// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/evidence_table.h"
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
  bool native = true;        // collectives are all visible, so byte counts are evidence
  bool all_tensors = false;  // -v: a row for every tensor
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
// the runner skips the arm before it starts.
bool needs_agreement(const Expect& expect, const ExpectationContext& context);

}  // namespace gradcheck
