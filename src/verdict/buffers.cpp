// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>

#include "verdict/sides.h"

namespace gradcheck {
namespace {

// Does the policy demand equality at this moment? Broadcast buffers are equal where a forward
// begins; in between they may drift (batch-norm statistics do, by design).
bool must_be_equal(BufferPolicy policy, const RowKey& key) {
  if (policy == BufferPolicy::must_equal) return true;
  const bool first_start = key.stage == Stage::start && key.step == 0;
  return policy == BufferPolicy::broadcast_before_forward &&
         (first_start || key.stage == Stage::next_forward);
}

// A job that switches broadcasting off has not said that its buffers should differ.
bool is_switched_off(const Context& context, const PlanLine& line) {
  return !context.input.native && line.buffers == BufferPolicy::rank_local &&
         line.source == PlanSource::wrapper;
}

struct BufferFate {
  bool at_start = false;
  bool after = false;
  bool incomplete = false;
};

// Every stage is looked at; the policy says which differences matter.
void judge_row(const Context& context, const PlanLine& line, const RowKey& key, BufferFate& fate,
               FindingSet& findings) {
  const Agreement agreement = compare_ranks(context.table().entries(key), line.group);
  if (!agreement.complete()) {
    fate.incomplete = true;
    findings.add({604, line.model, line.name, key.step, agreement.unrecorded,
                  fmt::format("buffers not recorded at `{}`", name_of(key.stage))});
  }
  if (agreement.equal()) return;
  (key.stage == Stage::start ? fate.at_start : fate.after) = true;
  const auto detail = fmt::format("at `{}`", name_of(key.stage));
  if (must_be_equal(line.buffers, key)) {
    findings.add({401, line.model, line.name, key.step, minority(agreement), detail});
  } else if (line.buffers == BufferPolicy::undeclared) {
    findings.add({403, line.model, line.name, key.step, minority(agreement), ""});
  } else if (is_switched_off(context, line)) {
    findings.add({403, line.model, line.name, key.step, minority(agreement),
                  "the wrapper does not broadcast them"});
  }
}

// Bytes that one forward of the wrapper broadcasts, averaged over the forwards of rank 0.
std::optional<double> broadcast_bytes(const Context& context) {
  std::uint64_t bytes = 0, times = 0;
  for (const EventRecord& event : context.table().rank(0).events) {
    if (event.type != EventType::buffers_broadcast) continue;
    bytes += event.bytes;
    ++times;
  }
  if (bytes == 0) return std::nullopt;
  return static_cast<double>(bytes) / static_cast<double>(times);
}

}  // namespace

SideTotals judge_buffers(const Context& context, FindingSet& findings) {
  std::map<TensorId, BufferFate> fates;
  for (const RowKey& key : context.table().rows()) {
    if (key.kind != TensorKind::buffer) continue;
    const TensorId tensor{key.model, key.name};
    const StepFacts* step = find_step(context.facts, key.model, key.step);
    if (step != nullptr && step->joined) continue;
    judge_row(context, context.plan.line(tensor), key, fates[tensor], findings);
  }
  SideTotals totals;
  for (const auto& [tensor, fate] : fates) {
    ++totals.compared;
    totals.differed_at_start += fate.at_start;
    totals.differed_after += fate.after;
    totals.unrecorded += fate.incomplete;
  }
  totals.broadcast_bytes_per_forward = broadcast_bytes(context);
  if (totals.broadcast_bytes_per_forward) {
    findings.say(402, fmt::format("buffers are broadcast at every forward: {:.0f} bytes",
                                  *totals.broadcast_bytes_per_forward));
  }
  return totals;
}

}  // namespace gradcheck
