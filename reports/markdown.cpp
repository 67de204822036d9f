// SPDX-License-Identifier: Apache-2.0
#include "reports/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "reports/arm_tables.h"
#include "reports/console_problem.h"
#include "reports/numbers.h"
#include "reports/page.h"
#include "reports/text.h"
#include "reports/words.h"

namespace gradcheck {
namespace {

constexpr std::size_t kTailBytes = 1000;                     // for the lines that count the rest
constexpr std::size_t kTableBytes = kMarkdownBytes * 2 / 3;  // of arms; details take what is left
constexpr std::size_t kTensorsShown = 200;                   // an arm

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Some marks mark nothing where they stand and read better bare: an underscore between letters, a
// bracket that no link follows, the tilde of an estimate, which could only open a strike-through.
bool is_harmless(std::string_view text, std::size_t i) {
  const char before = i > 0 ? text[i - 1] : ' ';
  const char after = i + 1 < text.size() ? text[i + 1] : ' ';
  switch (text[i]) {
    case '_':
      return is_word(before) && is_word(after);
    case '~':
      return before == ' ' && is_word(after);
    case ']':
      return after != '(' && after != '[' && after != ':';
    default:
      return text[i] == '[';
  }
}

// As character references: CommonMark takes none of them for markup, and no cell ends early.
std::string escaped(std::string_view raw) {
  const std::string text = printable(raw);
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool special = std::string_view("|<>&`*_[]~\\").find(text[i]) != std::string_view::npos;
    if (special && !is_harmless(text, i)) {
      result += fmt::format("&#{};", static_cast<int>(text[i]));
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string row_of(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) row += " " + escaped(cell) + " |";
  return row + "\n";
}

std::string verdict_cell(Verdict verdict) {
  const std::string name(name_of(verdict));
  return is_problem(verdict) ? "| **" + name + "** " : "| " + name + " ";
}

std::string arm_row(const ScenarioReport& scenario, const ArmReport& arm) {
  const std::string& seen = arm.headline.empty() ? arm.reason : arm.headline;
  return verdict_cell(arm.verdict) +
         row_of({name_or_unnamed(scenario.name), name_or_unnamed(arm.name), counts_text(arm),
                 max_number(arm), seen});
}

std::string scenario_row(const ScenarioReport& scenario) {
  return verdict_cell(scenario.verdict) +
         row_of({name_or_unnamed(scenario.name), "", "", "", scenario.reason});
}

// Adds pieces while they fit below `limit` and counts the others.
class Bounded {
 public:
  explicit Bounded(std::string& text) : text_(text) {}

  void add(const std::string& piece, std::size_t limit) {
    const bool fits = left_out_ == 0 && text_.size() + piece.size() + kTailBytes <= limit;
    if (fits) text_ += piece;
    left_out_ += fits ? 0 : 1;
  }
  bool is_full() const { return left_out_ > 0; }
  void leave_out() { ++left_out_; }
  void finish(std::string_view what) {
    if (left_out_ > 0) text_ += fmt::format("\n… {} more {}\n", left_out_, what);
  }

 private:
  std::string& text_;
  std::size_t left_out_ = 0;
};

void add_arm_table(std::string& text, const Report& report) {
  if (report.scenarios.empty()) return;
  text += "| verdict | scenario | arm | gradients | largest difference | what was seen |\n";
  text += "|---|---|---|---:|---:|---|\n";
  Bounded rows(text);
  for (const ScenarioReport& scenario : report.scenarios) {
    if (scenario.arms.empty()) rows.add(scenario_row(scenario), kTableBytes);
    for (const ArmReport& arm : scenario.arms) rows.add(arm_row(scenario, arm), kTableBytes);
  }
  rows.finish("arms");
}

// Longer than any run of backticks inside, so that nothing inside can end the block.
std::string fenced(const std::string& text) {
  std::size_t run = 0;
  std::size_t longest = 2;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  return fence + "text\n" + text + fence + "\n";
}

std::string table_text(const Table& table) {
  std::vector<std::string> titles;
  std::string marks = "|";
  for (const Column& column : table.columns) {
    titles.push_back(column.title);
    marks += column.align == Align::right ? "---:|" : "---|";
  }
  std::string text = row_of(titles) + marks + "\n";
  for (const auto& row : table.rows) text += row_of(row);
  return text;
}

std::string tensor_list(const ArmReport& arm) {
  const std::vector<const TensorRow*> worst = worst_rows(arm);
  if (worst.empty()) return "";
  ArmReport shown = {};
  shown.models = arm.models;
  for (std::size_t i = 0; i < std::min(worst.size(), kTensorsShown); ++i) {
    shown.tensors.push_back(*worst[i]);
  }
  std::string text = table_text(without_empty_columns(tensors_table(shown)));
  const auto all = std::max<std::int64_t>(arm.totals.differed + arm.totals.wrong,
                                          static_cast<std::int64_t>(worst.size()));
  const std::int64_t more = all - static_cast<std::int64_t>(shown.tensors.size());
  if (more > 0) text += fmt::format("\n… {} more tensors\n", more);
  return fmt::format("\n<details><summary>{}</summary>\n\n{}\n</details>\n", plural(all, "tensor"),
                     text);
}

std::string details_of(const RunInfo& run, const ScenarioReport& scenario, const ArmReport& arm) {
  ConsoleOptions plain;
  plain.width = 100;
  Page page(plain);
  if (!arm.headline.empty()) page.paragraph(0, printable(arm.headline));
  add_explanation(page, 0, arm);
  add_rerun(page, 0, arm, rerun_text(run, scenario, arm));
  return fmt::format("\n### {}: {} / {}\n\n", name_of(arm.verdict), escaped(scenario.name),
                     escaped(arm.name)) +
         fenced(page.take()) + tensor_list(arm);
}

}  // namespace

std::string markdown_text(const Report& report) {
  std::string text = "## gradcheck: " + summary_text(report) + "\n\n";
  add_arm_table(text, report);
  Bounded details(text);
  for (const ScenarioReport& scenario : report.scenarios) {
    for (const ArmReport& arm : scenario.arms) {
      if (!is_problem(arm.verdict)) continue;
      if (details.is_full()) {
        details.leave_out();
      } else {
        details.add(details_of(report.run, scenario, arm), kMarkdownBytes);
      }
    }
  }
  details.finish("arms in detail: see the JSON report");
  return text;
}

}  // namespace gradcheck
