// SPDX-License-Identifier: Apache-2.0
#include "verdict/judge.h"

#include <fmt/format.h>

#include "verdict/alignment.h"
#include "verdict/attribution.h"
#include "verdict/causes.h"
#include "verdict/coverage.h"
#include "verdict/declarations.h"
#include "verdict/event_counts.h"
#include "verdict/findings.h"
#include "verdict/ladder.h"
#include "verdict/log_probs.h"
#include "verdict/outcome.h"
#include "verdict/precisions.h"
#include "verdict/program.h"
#include "verdict/reduction.h"
#include "verdict/remarks.h"
#include "verdict/sides.h"
#include "verdict/spoken_notes.h"
#include "verdict/summary.h"
#include "verdict/unknown_reduction.h"
#include "verdict/unsupported.h"

namespace gradcheck {
namespace {

// What is asked about evidence stays as it is when the evidence is put in order.
Context prepare(const JudgeInput& input, const EvidenceTable& table, const PayloadViews& payloads,
                const PutTogether* shards) {
  Facts facts = arrange(table, input.native);
  Plan plan = infer_plan(table, facts, input.rules, input.native);
  return {input, table, payloads, std::move(facts), std::move(plan), shards};
}

// Shards that are no whole tensor.
void find_broken_shards(const Context& context, FindingSet& findings) {
  if (context.shards == nullptr) return;
  for (const ShardProblem& problem : context.shards->problems) {
    const RowKey& row = problem.row;
    findings.add({604,
                  context.table().text(row.model),
                  context.table().text(row.name),
                  row.step,
                  {},
                  fmt::format("shards at `{}`: {}", name_of(row.stage), problem.why)});
  }
}

void say_what_was_not_checked(const Context& context, ArmReport& arm) {
  auto& list = arm.scope.not_checked;
  if (context.table().world_size() == 1) list.push_back("agreement (one rank)");
  list.push_back("loss normalisation");
  for (std::string& line : log_probs_not_checked(context, arm)) list.push_back(std::move(line));
  std::uint64_t undeclared = 0, lossy = 0;
  for (const PlanLine& line : context.plan.lines) {
    if (line.kind != TensorKind::grad) continue;
    undeclared += line.role == Role::undeclared || is_unknown(line);
    lossy += line.reduction == Reduction::lossy;
  }
  if (undeclared > 0) {
    list.push_back(fmt::format("reduction of {}", counted(undeclared, "undeclared gradient")));
  }
  if (lossy > 0) list.push_back(fmt::format("reduction of {}", counted(lossy, "lossy gradient")));
}

void note_what_proved_nothing(const std::vector<GradientResult>& results, ArmReport& arm) {
  const Totals& totals = arm.totals;
  if (totals.proved_nothing > 0 && totals.proved_nothing < totals.inventory) {
    arm.notes.push_back(fmt::format("{} of {} proved nothing: no distinct non-zero locals",
                                    totals.proved_nothing, totals.inventory));
  }
  std::uint64_t unused = 0;
  for (const GradientResult& result : results) unused += !result.used;
  if (unused > 0) {
    arm.notes.push_back(counted(unused, "gradient") + " entered no optimizer step: not judged");
  }
}

// Log-probs have causes of their own.
std::vector<CauseClaim> causes_of(const Context& context,
                                  const std::vector<GradientResult>& results,
                                  const ArmReport& arm) {
  std::vector<Finding> others = arm.findings;
  std::erase_if(others, [](const Finding& finding) { return finding.code / 100 == 5; });
  std::vector<CauseClaim> causes = name_causes(context, results, others);
  name_log_prob_causes(context, arm.logp, causes);
  return causes;
}

// Evidence that was refused is not judged any further; how the program ended is still told.
ArmReport refusal(const EvidenceTable& table, FindingSet& findings, ArmReport arm) {
  arm.findings = findings.take();
  arm.outcome = Outcome::error;
  arm.headline = "evidence refused: " + table.refused().front();
  arm.notes = table.refused();
  return arm;
}

ArmReport judge_in_order(const Context& context) {
  const EvidenceTable& table = context.table();
  FindingSet findings(context);
  ArmReport arm;
  arm.world_size = table.world_size();
  arm.plan = context.plan.lines;
  arm.events = count_events(table);
  ProgramEnd end = read_end(context, findings);
  arm.ranks = std::move(end.ranks);
  if (!table.refused().empty()) return refusal(table, findings, std::move(arm));

  auto results = climb(context);
  const auto weights = judge_weights(context, results);
  attribute(context, results);
  read_unknown_reductions(context, results);
  if (!end.outcome) find_gaps(context, findings);
  if (!end.outcome) find_contradictions(context, findings);
  find_unsupported(context, findings);
  find_broken_shards(context, findings);
  find_in_gradients(context, results, findings);
  pass_notes_on(context, findings, arm.notes);
  find_stray_arms(context, findings);
  find_two_precisions(context, findings);
  judge_log_prob_sets(context, findings, arm);
  arm.parameters = judge_parameters(context, results, findings);
  arm.finals = judge_finals(context, results, findings, arm.notes);
  arm.buffers = judge_buffers(context, findings);

  summarise(context, results, weights, arm);
  arm.findings = findings.take();
  // What a program that failed did not record is missing for a known reason.
  if (end.outcome) std::erase_if(arm.findings, [](const Finding& f) { return f.code / 100 == 6; });
  arm.causes = causes_of(context, results, arm);
  say_what_was_not_checked(context, arm);
  if (!end.outcome) note_what_proved_nothing(results, arm);
  for (std::string& line : remarks(context, results)) arm.notes.push_back(std::move(line));
  arm.outcome = end.outcome.value_or(decide(context, results, arm));
  arm.headline = end.outcome ? end.headline : headline(context, results, arm);
  return arm;
}

}  // namespace

ArmReport judge(const JudgeInput& input) {
  const auto aligned_table = input.native ? std::nullopt : aligned(input.table);
  const PayloadViews none;  // they go by the numbers of the ranks
  const EvidenceTable& table = aligned_table ? *aligned_table : input.table;
  const PayloadViews& payloads = aligned_table ? none : input.payloads;
  const auto shards = put_together(table, payloads);
  if (!shards) return judge_in_order(prepare(input, table, payloads, nullptr));
  return judge_in_order(prepare(input, shards->table, shards->payloads, &*shards));
}

}  // namespace gradcheck
