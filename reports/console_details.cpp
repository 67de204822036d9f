// SPDX-License-Identifier: Apache-2.0
#include "reports/console_details.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "reports/arm_tables.h"
#include "reports/numbers.h"
#include "reports/text.h"
#include "reports/words.h"

namespace gradcheck {
namespace {

std::string pairs_text(const Pairs& pairs, std::string_view between) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : pairs) {
    parts.push_back(printable(name) + std::string(between) + printable(value));
  }
  return joined(parts, ", ");
}

std::string scope_text(const Scope& scope) {
  std::string text =
      fmt::format("{}, {} each, {}, {} of gradients a rank", plural(scope.steps, "step"),
                  plural(scope.micro_steps, "micro-step"), plural(scope.tensors, "tensor"),
                  bytes_text(static_cast<double>(scope.bytes)));
  if (!scope.not_checked.empty()) {
    text += "; not checked: " + printable(joined(scope.not_checked, ", "));
  }
  return text;
}

std::string totals_text(const Totals& totals) {
  std::string text = fmt::format(
      "{} compared, {} unrecorded, {} absent, {} zero, {} non-finite, {} proved nothing",
      totals.compared, totals.unrecorded, totals.absent, totals.zero, totals.nonfinite,
      totals.proved_nothing);
  if (totals.bound_used) text += "; bound used " + share_number(*totals.bound_used);
  if (totals.smallest_visible_weight) {
    text += "; smallest weight error visible " + short_number(*totals.smallest_visible_weight);
  }
  return text;
}

std::string events_text(const EventTotals& events) {
  return fmt::format(
      "{}, {} armed and {} unarmed, {}, {} of {}", plural(events.backwards, "backward"),
      plural(events.armed_forwards, "wrapper forward"), events.unarmed_forwards,
      plural(events.optimizer_steps, "optimizer step"), plural(events.collectives, "collective"),
      bytes_text(static_cast<double>(events.collective_bytes)));
}

bool is_empty(const SideTotals& side) { return side.compared == 0 && side.unrecorded == 0; }

std::string parameters_text(const SideTotals& side) {
  if (is_empty(side)) return "";
  return fmt::format(
      "{} compared, {} differed at start, {} differed after, {} moved, {} unrecorded",
      side.compared, side.differed_at_start, side.differed_after, side.moved, side.unrecorded);
}

std::string buffers_text(const SideTotals& side) {
  if (is_empty(side)) return "";
  std::string text = fmt::format("{} compared, {} differed at start, {} differed later",
                                 side.compared, side.differed_at_start, side.differed_after);
  if (side.broadcast_bytes_per_forward) {
    text += fmt::format(", {} broadcast a forward", bytes_text(*side.broadcast_bytes_per_forward));
  }
  return text;
}

std::string finals_text(const SideTotals& side) {
  if (is_empty(side)) return "";
  return fmt::format("{} compared, {} differed, {} unrecorded", side.compared, side.differed_after,
                     side.unrecorded);
}

// Tables are wide and start near the left edge, whatever the names of the arms.
void add_table(Page& page, std::string_view title, const Table& table) {
  constexpr std::size_t kIndent = 4;
  const std::vector<std::string> lines = lines_of(table);
  if (lines.empty()) return;
  page.line(std::string(kIndent, ' ') + page.paint(title, Style::bold));
  page.line(std::string(kIndent + 2, ' ') + page.paint(lines.front(), Style::dim));
  page.lines(kIndent + 2, {lines.begin() + 1, lines.end()});
}

void add_ranks(Page& page, std::size_t indent, const ArmReport& arm) {
  for (const RankRow& rank : arm.ranks) {
    if (!ended_well(rank)) continue;  // the others stand among the problems
    page.labelled(indent, fmt::format("rank {}", rank.rank), Style::dim, rank_end_text(rank));
    if (page.options().verbosity < 2) continue;
    for (const std::string& line : lines_of(without_escapes(rank.stderr_tail))) {
      page.line(std::string(indent + Page::kLabelColumns, ' ') + "| " + printable(line));
    }
  }
}

}  // namespace

void add_run_details(Page& page, const RunInfo& run) {
  std::vector<std::string> argv;
  for (const std::string& word : run.argv) argv.push_back(printable(shell_word(word)));
  std::string where = printable(run.id);
  if (!run.started_at.empty()) where += " at " + printable(run.started_at);
  if (!run.host.empty()) where += " on " + printable(run.host);
  page.labelled(0, "run", Style::dim, where);
  page.labelled(0, "command", Style::dim, joined(argv, " "));
  page.labelled(0, "versions", Style::dim, pairs_text(run.versions, " "));
  page.labelled(0, "env", Style::dim, pairs_text(run.env, "="));
}

void add_scenario_details(Page& page, const ScenarioReport& scenario) {
  if (!scenario.description.empty()) {
    page.paragraph(2, printable(scenario.description), Style::dim);
  }
  const Source& source = scenario.source;
  std::string from = printable(source.repo);
  if (source.pull_request > 0) from += fmt::format("#{}", source.pull_request);
  if (!source.file.empty()) from += " " + printable(source.file);
  if (source.line > 0) from += fmt::format(":{}", source.line);
  page.labelled(2, "source", Style::dim, from);
  page.labelled(2, "file", Style::dim, printable(scenario.file));
}

void add_arm_details(Page& page, std::size_t indent, const ArmReport& arm) {
  page.labelled(indent, "scope", Style::dim, scope_text(arm.scope));
  page.labelled(indent, "totals", Style::dim, totals_text(arm.totals));
  page.labelled(indent, "events", Style::dim, events_text(arm.events));
  page.labelled(indent, "params", Style::dim, parameters_text(arm.parameters));
  page.labelled(indent, "buffers", Style::dim, buffers_text(arm.buffers));
  page.labelled(indent, "finals", Style::dim, finals_text(arm.finals));
  add_ranks(page, indent, arm);
  if (arm.models.size() > 1) add_table(page, "models", models_table(arm));
  if (arm.steps.size() > 1) add_table(page, "steps", steps_table(arm));
  add_table(page, "rungs", rungs_table(arm));
  add_table(page, "tensors", tensors_table(arm));
  if (arm.truncated > 0) page.line(fmt::format("      … {} more tensors", arm.truncated));
  add_table(page, "plan", plan_table(arm));
}

}  // namespace gradcheck
