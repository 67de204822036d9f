// SPDX-License-Identifier: Apache-2.0
#include "reports/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "model/evidence_table.h"
#include "model/phrases.h"
#include "reports/numbers.h"
#include "reports/text.h"

namespace gradcheck {
namespace {

// Tensors that none of the other counts explains.
std::int64_t left_over(const Totals& totals) {
  return totals.inventory - totals.compared - totals.unrecorded - totals.absent;
}

std::string main_count(const ArmReport& arm) {
  const Totals& totals = arm.totals;
  if (totals.compared == 0) return "nothing compared";
  const bool against_reference = !arm.dumps.empty() && arm.dumps.back().against == "reference";
  if (arm.world_size <= 1 && against_reference) {
    const DumpReading& reading = arm.dumps.back();
    return fmt::format("{}/{} off the reference", reading.outside, reading.tensors);
  }
  if (arm.world_size > 1) return fmt::format("{}/{} differed", totals.differed, totals.inventory);
  return plural(totals.inventory, "tensor") + ", agreement not tested";
}

double rank_of(const TensorRow& row) {  // NaN is as bad as can be
  if (!row.max_abs) return -1;
  return std::isnan(*row.max_abs) ? std::numeric_limits<double>::infinity() : *row.max_abs;
}

bool is(const RankRow& rank, RankEnd end) { return rank.end == name_of(end); }

std::string how_it_ended(const RankRow& rank) {
  if (is(rank, RankEnd::signalled)) return "killed by " + signal_text(rank.status);
  if (is(rank, RankEnd::deadline)) return "passed its deadline";
  if (is(rank, RankEnd::running)) return "still running, ended by gradcheck";
  if (is(rank, RankEnd::exited)) return fmt::format("exited with status {}", rank.status);
  if (is(rank, RankEnd::bye)) return rank.exception_type.empty() ? "ended" : "raised";
  return rank.end.empty() ? "end not known" : printable(rank.end);
}

void add_once(std::vector<std::string>& texts, const std::string& text) {
  if (text.empty() || std::find(texts.begin(), texts.end(), text) != texts.end()) return;
  texts.push_back(text);
}

}  // namespace

std::string name_or_unnamed(std::string_view name) {
  return name.empty() ? "(unnamed)" : printable(name);
}

std::string counts_text(const ArmReport& arm) {
  if (arm.outcome == Outcome::skipped) return "skipped";
  if (arm.probe == "files" && !arm.logp.empty()) {
    return plural(arm.logp.front().reading.counts.compared, "token");
  }
  std::string text = main_count(arm);
  const auto add = [&text](std::int64_t count, std::string_view what) {
    if (count > 0) text += fmt::format(", {} {}", count, what);
  };
  add(arm.totals.wrong, "wrong");
  add(arm.totals.unrecorded, "unrecorded");
  if (arm.totals.compared > 0) add(left_over(arm.totals), "not compared");
  return text;
}

std::string max_number(const ArmReport& arm) {
  const Totals& totals = arm.totals;
  if (arm.world_size <= 1 || totals.compared == 0) return "";
  if (!totals.max_abs) return totals.differed > 0 ? "?" : "";
  const bool estimated = !totals.max_abs_exact && *totals.max_abs != 0;
  return (estimated ? "~" : "") + short_number(*totals.max_abs);
}

std::string max_text(const ArmReport& arm) {
  const std::string number = max_number(arm);
  return number.empty() ? "" : "max " + number;
}

bool is_problem(Verdict verdict) { return verdict == Verdict::fail || verdict == Verdict::error; }

std::string_view stop_text(const ArmReport& arm) {
  if (arm.verdict != Verdict::error) return "";
  for (const Finding& finding : arm.findings) {
    if (finding.severity != Severity::error) continue;
    if (finding.code == 801) return "raised";
    if (finding.code == 802) return "died";
    if (finding.code == 803) return "deadline";
  }
  return arm.outcome == Outcome::raised ? "raised" : "";
}

std::string ending_text(const ArmReport& arm) {
  constexpr std::array<std::string_view, 4> kEndings = {"as expected", "not as expected",
                                                        "could not judge", "skipped"};
  const std::string_view ending = kEndings[static_cast<std::size_t>(arm.verdict)];
  const std::string_view stop = stop_text(arm);
  return stop.empty() ? std::string(ending) : fmt::format("{}: {}", ending, stop);
}

std::string reason_text(const ArmReport& arm) {
  if (!arm.reason.empty() || arm.verdict == Verdict::pass) return printable(arm.reason);
  return fmt::format("expected {}, was {}", name_of(arm.expected), name_of(arm.outcome));
}

std::vector<std::string> facets_of(const ArmReport& arm) {
  const std::string seed = arm.probe == "native" ? fmt::format("seed {}", arm.seed) : "";
  return {plural(arm.world_size, "rank"), printable(arm.backend), printable(arm.dtype), seed};
}

std::vector<const TensorRow*> worst_rows(const ArmReport& arm) {
  std::vector<const TensorRow*> rows;
  for (const TensorRow& row : arm.tensors) {
    if (row.differed || row.wrong) rows.push_back(&row);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const TensorRow* a, const TensorRow* b) {
    return rank_of(*a) > rank_of(*b);
  });
  return rows;
}

std::string tensor_text(const ArmReport& arm, const TensorRow& row) {
  const std::string name = name_or_unnamed(row.name);
  return arm.models.size() > 1 ? printable(row.model) + "/" + name : name;
}

std::string names_text(const std::vector<std::string>& names, std::size_t total,
                       std::size_t columns) {
  std::string text;
  std::size_t shown = 0;
  for (const std::string& name : names) {
    std::string longer = text;
    longer.append(shown > 0 ? ", " : "").append(name);
    constexpr std::size_t kTail = 12;  // ", … (+99999)"
    if (shown > 0 && columns_of(longer) + kTail > columns) break;
    text = longer;
    ++shown;
  }
  if (shown < total) text += fmt::format("{}… (+{})", shown > 0 ? ", " : "", total - shown);
  return text;
}

std::string finding_text(const Finding& finding) {
  return fmt::format("{}: {}", name_of(finding.severity), printable(finding.message));
}

std::string cause_text(const CauseClaim& claim) {
  const CauseInfo& info = info_of(claim.cause);
  return fmt::format("{} ({}): {}", info.name, name_of(claim.confidence), info.summary);
}

std::vector<std::string> next_steps(const ArmReport& arm) {
  std::vector<std::string> steps;
  for (const CauseClaim& claim : arm.causes) add_once(steps, printable(claim.next));
  if (!steps.empty()) return steps;
  for (const Finding& finding : arm.findings) {
    if (finding.severity != Severity::note) add_once(steps, printable(finding.hint));
  }
  return steps;
}

bool ended_well(const RankRow& rank) {
  const bool ended = is(rank, RankEnd::bye) || is(rank, RankEnd::exited);
  return ended && rank.status == 0 && rank.exception_type.empty();
}

std::string rank_end_text(const RankRow& rank) {
  std::string text = how_it_ended(rank);
  if (!rank.phase.empty()) text += " in " + printable(rank.phase);
  if (!rank.last_record.empty()) text += "; last record: " + printable(rank.last_record);
  return text;
}

std::string ranks_without_row(const ArmReport& arm) {
  if (arm.ranks.empty()) return "";
  std::set<int> known;
  for (const RankRow& row : arm.ranks) known.insert(row.rank);
  const auto missing = arm.world_size - static_cast<std::int64_t>(known.size());
  constexpr std::int64_t kNamed = 8;  // a report may claim any world_size
  if (missing > kNamed) return fmt::format("{} of {} ranks", missing, arm.world_size);
  std::vector<int> ranks;
  for (int rank = 0; rank < arm.world_size; ++rank) {
    if (!known.contains(rank)) ranks.push_back(rank);
  }
  return ranks_text(ranks);
}

// A job that was run with `exec`: the same command again, with -v.
std::string command_text(const std::vector<std::string>& argv) {
  if (argv.size() < 2) return "";
  std::string text = "gradcheck " + argv[1] + " -v";
  for (std::size_t i = 2; i < argv.size(); ++i) text += " " + shell_word(argv[i]);
  return printable(text);
}

std::string rerun_text(const RunInfo& run, const ScenarioReport& scenario, const ArmReport& arm) {
  if (scenario.file.empty() && arm.probe != "native") return command_text(run.argv);
  if (scenario.file.empty() || scenario.name.empty() || arm.name.empty()) return "";
  const bool by_path = std::find(run.argv.begin(), run.argv.end(), scenario.file) != run.argv.end();
  return fmt::format("gradcheck --scenario {} --arm {} -v",
                     printable(shell_word(by_path ? scenario.file : scenario.name)),
                     printable(shell_word(arm.name)));
}

std::string summary_text(const Report& report) {
  std::int64_t arms = 0;
  for (const ScenarioReport& scenario : report.scenarios) {
    arms += static_cast<std::int64_t>(scenario.arms.size());
  }
  std::vector<std::string> counts;
  const auto add = [&counts](std::int64_t count, Verdict verdict) {
    if (count > 0) counts.push_back(fmt::format("{} {}", count, name_of(verdict)));
  };
  add(report.summary.pass, Verdict::pass);
  add(report.summary.fail, Verdict::fail);
  add(report.summary.error, Verdict::error);
  add(report.summary.skip, Verdict::skip);
  if (counts.empty()) return "nothing was run";
  return fmt::format("{}, {}: {}",
                     plural(static_cast<std::int64_t>(report.scenarios.size()), "scenario"),
                     plural(arms, "arm"), joined(counts, ", "));
}

}  // namespace gradcheck
