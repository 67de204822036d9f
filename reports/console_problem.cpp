// SPDX-License-Identifier: Apache-2.0
#include "reports/console_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/phrases.h"
#include "reports/dump_text.h"
#include "reports/log_prob_text.h"
#include "reports/text.h"
#include "reports/words.h"

namespace gradcheck {
namespace {

Style style_of(Severity severity) {
  switch (severity) {
    case Severity::error:
      return Style::red;
    case Severity::warning:
      return Style::yellow;
    case Severity::note:
      return Style::dim;
  }
  return Style::plain;
}

constexpr std::size_t kWorst = 2;

std::size_t bad_tensors(const ArmReport& arm) {
  return static_cast<std::size_t>(
      std::max<std::int64_t>(0, arm.totals.differed + arm.totals.wrong));
}

// "a, b, … (+308)"; empty where no row is bad.
std::string worst_text(const ArmReport& arm, std::size_t room) {
  std::vector<std::string> names;
  for (const TensorRow* row : worst_rows(arm)) {
    if (names.size() == kWorst) break;
    names.push_back(tensor_text(arm, *row));
  }
  if (names.empty()) return "";
  return names_text(names, std::max(names.size(), bad_tensors(arm)), room);
}

// Where it was seen, as far as the message does not say so itself.
std::string where_text(const Finding& finding) {
  std::vector<std::string> where;
  if (!finding.model.empty()) where.push_back(printable(finding.model));
  const bool said = finding.message.find(ranks_text(finding.ranks)) != std::string::npos;
  if (!finding.ranks.empty() && !said) where.push_back(ranks_text(finding.ranks));
  if (finding.step > 0) where.push_back(fmt::format("first at step {}", finding.step));
  return where.empty() ? "" : " (" + joined(where, "; ") + ")";
}

// The headline is long where it holds an exception or why nothing could be started, and the arm's
// line has it: a finding that begins with it gives its title instead, a reason that ends with it
// stops before, a note that is part of it is left out.
std::string without_headline(const Finding& finding, const std::string& headline) {
  const CodeInfo* info = find_code(finding.code);
  if (headline.empty() || info == nullptr || !finding.message.starts_with(headline)) {
    return finding.message;
  }
  return std::string(info->title) + finding.message.substr(headline.size());
}

std::string reason_without_headline(const ArmReport& arm) {
  const std::string tail = ": " + arm.headline;
  if (!arm.reason.empty() && arm.reason == arm.headline) return "";
  if (arm.headline.empty() || !arm.reason.ends_with(tail)) return reason_text(arm);
  return printable(arm.reason.substr(0, arm.reason.size() - tail.size()));
}

void add_notes(Page& page, std::size_t indent, const ArmReport& arm) {
  for (const std::string& note : arm.notes) {
    const bool said = arm.headline.find(note) != std::string::npos;
    if (!said) page.labelled(indent, "note", Style::dim, printable(note));
  }
}

void add_finding(Page& page, std::size_t indent, const ArmReport& arm, const Finding& original) {
  Finding finding = original;
  finding.message = without_headline(original, arm.headline);
  page.labelled(indent, code_text(finding.code), style_of(finding.severity),
                finding_text(finding) + where_text(original));
  const bool with_names = finding.count != bad_tensors(arm);  // else the worst have said it
  if (finding.names.empty() || !with_names) return;
  std::vector<std::string> names;
  names.reserve(finding.names.size());
  for (const std::string& name : finding.names) names.push_back(name_or_unnamed(name));
  const std::size_t all = std::max<std::size_t>(names.size(), finding.count);
  const std::size_t room = page.columns_behind(indent + Page::kLabelColumns);
  page.labelled(indent, "", Style::plain, names_text(names, all, room), Style::dim);
}

void add_cause(Page& page, std::size_t indent, const CauseClaim& claim) {
  std::string text = cause_text(claim);
  if (!claim.model.empty()) text += " (" + printable(claim.model) + ")";
  page.labelled(indent, "cause", Style::bold, text);
  page.labelled(indent, "  at", Style::dim, printable(claim.site));
  for (const auto& evidence : claim.evidence) {
    page.labelled(indent, "  for", Style::dim, printable(evidence));
  }
  for (const auto& against : claim.against) {
    page.labelled(indent, "  against", Style::dim, printable(against));
  }
}

// Lines of another program's output, shortened so that none is broken.
void add_output(Page& page, std::size_t indent, std::string_view text, std::size_t most) {
  for (const std::string& line : last_lines(without_escapes(text), most)) {
    page.line(
        std::string(indent, ' ') +
        page.paint("| " + shorten(printable(line), page.columns_behind(indent + 2)), Style::dim));
  }
}

void add_rank(Page& page, std::size_t indent, const RankRow& rank) {
  constexpr std::size_t kLines[] = {6, 40, 100000};  // of stderr, by verbosity
  const auto level = static_cast<std::size_t>(std::clamp(page.options().verbosity, 0, 2));
  const std::size_t behind = indent + Page::kLabelColumns;
  page.labelled(indent, fmt::format("rank {}", rank.rank), Style::bold, rank_end_text(rank));
  if (!rank.exception_type.empty() || !rank.exception_text.empty()) {
    const std::string type = rank.exception_type.empty() ? "exception" : rank.exception_type;
    page.paragraph(behind,
                   printable(type) + ": " +
                       printable(joined(lines_of(without_escapes(rank.exception_text)), " ")));
  }
  add_output(page, behind, rank.stderr_tail, kLines[level]);
}

void add_bad_ranks(Page& page, std::size_t indent, const ArmReport& arm) {
  for (const RankRow& rank : arm.ranks) {
    if (!ended_well(rank)) add_rank(page, indent, rank);
  }
  const std::string unknown = ranks_without_row(arm);
  if (!unknown.empty()) page.labelled(indent, "ranks", Style::bold, "nothing known of " + unknown);
}

void add_findings(Page& page, std::size_t indent, const ArmReport& arm, Severity least) {
  for (const Finding& finding : arm.findings) {
    if (finding.severity >= least) add_finding(page, indent, arm, finding);
  }
}

void add_problem(Page& page, std::size_t indent, const ArmReport& arm) {
  const std::size_t room = page.columns_behind(indent + Page::kLabelColumns);
  page.labelled(indent, "worst", Style::dim, worst_text(arm, room));
  page.labelled(indent, "reason", Style::dim, reason_without_headline(arm));
  add_findings(page, indent, arm, Severity::note);
  for (const CauseClaim& claim : arm.causes) add_cause(page, indent, claim);
  add_bad_ranks(page, indent, arm);
  add_notes(page, indent, arm);
  for (const auto& next : next_steps(arm)) page.labelled(indent, "next", Style::bold, next);
}

void add_short_worst(Page& page, std::size_t indent, const ArmReport& arm) {
  constexpr std::string_view kWord = "worst ";
  const std::string text = worst_text(arm, page.columns_behind(indent + kWord.size()));
  if (text.empty()) return;
  page.line(std::string(indent, ' ') + page.paint(kWord, Style::dim) + text);
}

// Warnings do not fail a consistent arm, so nothing else would show them. A control that differs as
// it should has said enough.
void add_remarks(Page& page, std::size_t indent, const ArmReport& arm) {
  if (arm.outcome == Outcome::consistent) add_findings(page, indent, arm, Severity::warning);
  constexpr std::size_t kMost = 2;
  const std::size_t shown = std::min(arm.notes.size(), kMost);
  for (std::size_t i = 0; i < shown; ++i) {
    page.labelled(indent, "note", Style::dim, printable(arm.notes[i]), Style::dim);
  }
  if (arm.notes.size() > shown) {
    page.labelled(indent, "", Style::dim,
                  fmt::format("… {} more with -v", arm.notes.size() - shown), Style::dim);
  }
}

// Everything the short form leaves out.
void add_all_remarks(Page& page, std::size_t indent, const ArmReport& arm) {
  add_findings(page, indent, arm, Severity::note);
  for (const CauseClaim& claim : arm.causes) add_cause(page, indent, claim);
  add_notes(page, indent, arm);
}

void add_judged(Page& page, std::size_t indent, const ArmReport& arm) {
  if (is_problem(arm.verdict)) return add_problem(page, indent, arm);
  add_short_worst(page, indent, arm);
  if (arm.verdict == Verdict::skip) return;  // its line says why
  if (page.options().verbosity > 0) return add_all_remarks(page, indent, arm);
  add_remarks(page, indent, arm);
}

}  // namespace

void add_explanation(Page& page, std::size_t indent, const ArmReport& arm) {
  add_judged(page, indent, arm);
  for (const DumpReading& reading : arm.dumps) add_dumps(page, indent, reading);
  const bool about_them = arm.probe == "files" || is_problem(arm.verdict);
  const bool wanted = about_them || page.options().verbosity > 0;
  if (!wanted) return;
  for (const LogProbArm& judged : arm.logp) add_log_probs(page, indent, judged);
}

void add_rerun(Page& page, std::size_t indent, const ArmReport& arm, const std::string& command) {
  const bool already = page.options().verbosity > 0;
  if (is_problem(arm.verdict) && !already) page.labelled(indent, "rerun", Style::dim, command);
}

}  // namespace gradcheck
