// SPDX-License-Identifier: Apache-2.0
#include "reports/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "reports/console_details.h"
#include "reports/console_problem.h"
#include "reports/numbers.h"
#include "reports/text.h"
#include "reports/words.h"

namespace gradcheck {
namespace {

constexpr std::string_view kGap = "   ";

// One arm's line before it is aligned. A skipped arm has a name and counts only.
struct ArmCells {
  std::string name, counts, max, ending, headline;
  bool skipped = false;
};

// `fraction` is counts up to the slash, aligned on the right.
struct Widths {
  std::size_t name = 0, fraction = 0, counts = 0, max = 0, ending = 0;
};

std::size_t fraction_columns(const ArmCells& cells) {
  const std::size_t slash = cells.counts.find('/');
  return slash == std::string::npos ? 0 : slash;
}

// Facets that all arms share stand in the scenario's line; the others with each arm.
std::vector<bool> shared_facets(const ScenarioReport& scenario) {
  std::vector<bool> shared;
  if (scenario.arms.empty()) return shared;
  const std::vector<std::string> first = facets_of(scenario.arms.front());
  shared.assign(first.size(), true);
  for (const ArmReport& arm : scenario.arms) {
    const std::vector<std::string> facets = facets_of(arm);
    for (std::size_t i = 0; i < facets.size(); ++i) shared[i] = shared[i] && facets[i] == first[i];
  }
  return shared;
}

std::string facets_text(const ArmReport& arm, const std::vector<bool>& shared, bool wanted) {
  const std::vector<std::string> facets = facets_of(arm);
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < facets.size(); ++i) {
    if (shared[i] == wanted && !facets[i].empty()) parts.push_back(facets[i]);
  }
  return joined(parts, ", ");
}

std::string with_gap(const std::string& before, std::string_view after) {
  if (before.empty() || after.empty()) return before + std::string(after);
  return before + std::string(kGap) + std::string(after);
}

ArmCells cells_of(const ArmReport& arm, const std::vector<bool>& shared) {
  ArmCells cells;
  cells.name = name_or_unnamed(arm.name);
  cells.counts = counts_text(arm);
  cells.skipped = arm.outcome == Outcome::skipped;
  if (cells.skipped) {
    if (!arm.reason.empty()) cells.counts += ": " + printable(arm.reason);
    return cells;
  }
  cells.max = max_text(arm);
  cells.ending = ending_text(arm.verdict);
  const std::string own = facets_text(arm, shared, false);
  cells.headline = with_gap(own, printable(arm.headline));
  return cells;
}

Widths widths_of(std::vector<ArmCells>& arms) {
  Widths widths;
  for (const ArmCells& cells : arms) {
    widths.fraction = std::max(widths.fraction, fraction_columns(cells));
  }
  for (ArmCells& cells : arms) {
    if (const std::size_t columns = fraction_columns(cells)) {
      cells.counts.insert(0, widths.fraction - columns, ' ');
    }
    widths.name = std::max(widths.name, columns_of(cells.name));
    if (cells.skipped) continue;
    widths.counts = std::max(widths.counts, columns_of(cells.counts));
    widths.max = std::max(widths.max, columns_of(cells.max));
    widths.ending = std::max(widths.ending, columns_of(cells.ending));
  }
  return widths;
}

std::size_t hang_of(const Widths& widths) {
  constexpr std::size_t kMost = 24;  // a longer name pushes its own line only
  return 2 + std::min(widths.name, kMost) + kGap.size();
}

void add_arm_line(Page& page, const ArmReport& arm, const ArmCells& cells, const Widths& widths) {
  const std::size_t hang = hang_of(widths);
  std::string bare = pad_right("  " + cells.name + std::string(kGap), hang);
  if (cells.skipped) return page.line(bare + page.paint(cells.counts, Style::dim));
  bare += pad_right(cells.counts, widths.counts);
  if (widths.max > 0) bare += std::string(kGap) + pad_right(cells.max, widths.max);
  if (!cells.ending.empty()) bare += kGap;
  const std::size_t used =
      columns_of(bare) + widths.ending + kGap.size() + columns_of(cells.headline);
  const bool fits = page.options().width == 0 || used <= page.options().width;
  std::string line = bare + page.paint(cells.ending, style_of(arm.verdict));
  if (fits && !cells.headline.empty()) {
    line += std::string(widths.ending - columns_of(cells.ending), ' ') + std::string(kGap) +
            cells.headline;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  page.line(line);
  if (!fits) page.paragraph(hang, cells.headline);
}

// What a line on its own must say of a scenario that did not pass.
std::string worst_arm_text(const ScenarioReport& scenario) {
  if (scenario.verdict == Verdict::pass) return "";
  for (const ArmReport& arm : scenario.arms) {
    if (arm.verdict == scenario.verdict) return name_or_unnamed(arm.name) + ": " + counts_text(arm);
  }
  return printable(scenario.reason);
}

void add_header(Page& page, const ScenarioReport& scenario, const std::vector<bool>& shared) {
  const std::string verdict = pad_right(std::string(name_of(scenario.verdict)), 5);
  std::string line = page.paint(verdict, style_of(scenario.verdict)) + " " +
                     page.paint(name_or_unnamed(scenario.name), Style::bold);
  if (!scenario.arms.empty()) {
    line = with_gap(line, facets_text(scenario.arms.front(), shared, true));
  }
  const std::string worst = page.options().quiet ? worst_arm_text(scenario) : "";
  line = with_gap(line, worst.empty() ? page.paint(printable(scenario.title), Style::dim) : worst);
  if (scenario.control_not_run) {
    line = with_gap(line, page.paint("control: not run", Style::yellow));
  }
  page.line(line);
}

// Said once: an arm repeats it otherwise.
bool has_own_reason(const ScenarioReport& scenario) {
  return !scenario.reason.empty() &&
         std::none_of(scenario.arms.begin(), scenario.arms.end(),
                      [&](const ArmReport& arm) { return arm.reason == scenario.reason; });
}

void add_scenario(Page& page, const RunInfo& run, const ScenarioReport& scenario) {
  const std::vector<bool> shared = shared_facets(scenario);
  add_header(page, scenario, shared);
  if (page.options().quiet) return;
  if (has_own_reason(scenario)) page.paragraph(2, printable(scenario.reason));
  if (page.options().verbosity > 0) add_scenario_details(page, scenario);
  std::vector<ArmCells> cells;
  for (const ArmReport& arm : scenario.arms) cells.push_back(cells_of(arm, shared));
  const Widths widths = widths_of(cells);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const ArmReport& arm = scenario.arms[i];
    add_arm_line(page, arm, cells[i], widths);
    add_explanation(page, hang_of(widths), arm);
    if (page.options().verbosity > 0) add_arm_details(page, hang_of(widths), arm);
    add_rerun(page, hang_of(widths), arm, rerun_text(run, scenario, arm));
  }
}

class ConsoleReporter : public Reporter {
 public:
  ConsoleReporter(Sink sink, const ConsoleOptions& options)
      : sink_(std::move(sink)), page_(options) {}

  void run_started(const RunInfo& run) override {
    run_ = run;
    if (page_.options().verbosity > 0) add_run_details(page_, run);
    sink_.write(page_.take());
  }

  void scenario_finished(const ScenarioReport& scenario) override {
    add_scenario(page_, run_, scenario);
    sink_.write(page_.take());
  }

  void run_finished(const Report& report) override {
    page_.line(summary_text(report) + ", " + seconds(report.run.duration_s));
    sink_.write(page_.take());
    sink_.finish();
  }

 private:
  Sink sink_;
  Page page_;
  RunInfo run_;
};

}  // namespace

std::unique_ptr<Reporter> make_console_reporter(Sink sink, const ConsoleOptions& options) {
  return std::make_unique<ConsoleReporter>(std::move(sink), options);
}

}  // namespace gradcheck
