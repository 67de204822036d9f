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

constexpr char kGap[] = "   ";
constexpr std::size_t kGapColumns = sizeof(kGap) - 1;

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

// An arm that was skipped knows nothing of how it would have run.
const ArmReport& first_that_ran(const ScenarioReport& scenario) {
  const auto ran = [](const ArmReport& arm) { return arm.outcome != Outcome::skipped; };
  const auto found = std::ranges::find_if(scenario.arms, ran);
  return found == scenario.arms.end() ? scenario.arms.front() : *found;
}

// Facets that all arms share stand in the scenario's line; the others with each arm.
std::vector<bool> shared_facets(const ScenarioReport& scenario) {
  std::vector<bool> shared;
  if (scenario.arms.empty()) return shared;
  const std::vector<std::string> first = facets_of(first_that_ran(scenario));
  shared.assign(first.size(), true);
  for (const ArmReport& arm : scenario.arms) {
    if (arm.outcome == Outcome::skipped) continue;
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
  return before + kGap + std::string(after);
}

// What kept one arm from starting usually keeps the others from it too and is said once.
std::string headline_text(const ScenarioReport& scenario, const ArmReport& arm) {
  if (arm.outcome != Outcome::error) return printable(arm.headline);
  for (const ArmReport& earlier : scenario.arms) {
    if (&earlier == &arm) break;
    const bool same = earlier.outcome == Outcome::error && earlier.headline == arm.headline;
    if (same && !arm.headline.empty()) return "the same as " + name_or_unnamed(earlier.name);
  }
  return printable(arm.headline);
}

ArmCells cells_of(const ScenarioReport& scenario, const ArmReport& arm,
                  const std::vector<bool>& shared) {
  ArmCells cells;
  cells.name = name_or_unnamed(arm.name);
  cells.counts = counts_text(arm);
  cells.skipped = arm.outcome == Outcome::skipped;
  if (cells.skipped) {
    if (!arm.reason.empty()) cells.counts += ": " + printable(arm.reason);
    return cells;
  }
  cells.max = max_text(arm);
  cells.ending = ending_text(arm);
  const std::string own = facets_text(arm, shared, false);
  cells.headline = with_gap(own, headline_text(scenario, arm));
  return cells;
}

std::size_t hang_of(const Widths& widths) {
  constexpr std::size_t kMost = 24;  // a longer name pushes its own line only
  return 2 + std::min(widths.name, kMost) + kGapColumns;
}

// Where the columns do not fit side by side, no line is padded: its ending must stay in sight.
Widths fitted(const Widths& widths, std::size_t page_width) {
  const std::size_t max = widths.max == 0 ? 0 : kGapColumns + widths.max;
  const std::size_t wanted = hang_of(widths) + widths.counts + max + kGapColumns + widths.ending;
  if (page_width == 0 || wanted <= page_width) return widths;
  return {widths.name, widths.fraction, 0, 0, 0};
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

void add_arm_line(Page& page, const ArmReport& arm, const ArmCells& cells, const Widths& widths) {
  const std::size_t hang = hang_of(widths);
  std::string bare = pad_right("  " + cells.name + kGap, hang);
  if (cells.skipped) return page.line(bare + page.paint(cells.counts, Style::dim));
  bare += pad_right(cells.counts, widths.counts);
  if (widths.max + cells.max.size() > 0) bare += kGap + pad_right(cells.max, widths.max);
  if (!cells.ending.empty()) bare += kGap;
  const std::size_t ending = std::max(widths.ending, columns_of(cells.ending));
  const std::size_t used = columns_of(bare) + ending + kGapColumns + columns_of(cells.headline);
  const bool fits = page.options().width == 0 || used <= page.options().width;
  std::string line = bare + page.paint(cells.ending, style_of(arm.verdict));
  if (fits && !cells.headline.empty()) {
    line += std::string(ending - columns_of(cells.ending), ' ') + kGap + cells.headline;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  page.line(line);
  if (!fits) page.paragraph(hang, cells.headline);
}

// What else the first line says of a scenario that did not pass. Where arms follow (not quiet),
// theirs say the rest.
std::string worst_arm_text(const ScenarioReport& scenario, bool quiet) {
  if (scenario.verdict == Verdict::pass) return "";
  for (const ArmReport& arm : scenario.arms) {
    if (arm.verdict != scenario.verdict) continue;
    std::string what(stop_text(arm));
    if (what.empty() && quiet && arm.verdict == Verdict::error) what = printable(arm.headline);
    if (what.empty() && quiet) what = counts_text(arm);
    return what.empty() ? "" : name_or_unnamed(arm.name) + ": " + what;
  }
  return quiet ? printable(scenario.reason) : "";
}

struct Part {
  std::string text;
  Style style = Style::plain;
};

// The answer first; what it was run on may stand on a second line.
std::vector<Part> header_parts(const ScenarioReport& scenario, const std::vector<bool>& shared,
                               bool quiet) {
  std::vector<Part> parts;
  const auto add = [&parts](const std::string& text, Style style) {
    if (!text.empty()) parts.push_back({text, style});
  };
  if (scenario.control_not_run) add("control: not run", Style::yellow);
  // Where files are compared the answer is a count, and there is one arm.
  for (const ArmReport& arm : scenario.arms) {
    if (!quiet && !arm.dumps.empty()) add(counts_text(arm), Style::plain);
  }
  const std::string worst = worst_arm_text(scenario, quiet);
  add(worst, Style::plain);
  if (!scenario.arms.empty())
    add(facets_text(first_that_ran(scenario), shared, true), Style::plain);
  if (!quiet || worst.empty()) add(printable(scenario.title), Style::dim);
  return parts;
}

// Verdicts are five columns wide, so that names stand beneath one another.
void add_header(Page& page, const ScenarioReport& scenario, const std::vector<bool>& shared) {
  constexpr std::size_t kVerdict = 5;
  const std::string name = name_or_unnamed(scenario.name);
  std::string line = page.paint(pad_right(std::string(name_of(scenario.verdict)), kVerdict),
                                style_of(scenario.verdict)) +
                     " " + page.paint(name, Style::bold);
  std::size_t used = kVerdict + 1 + columns_of(name);
  const ConsoleOptions& options = page.options();
  for (const auto& [text, style] : header_parts(scenario, shared, options.quiet)) {
    const std::size_t wanted = kGapColumns + columns_of(text);
    const bool fits = options.width == 0 || used + wanted <= options.width;
    if (fits || options.quiet) {
      line += kGap + page.paint(text, style);
      used += wanted;
    } else {
      page.line(std::exchange(line, std::string(kVerdict + 1, ' ') + page.paint(text, style)));
      used = kVerdict + 1 + columns_of(text);
    }
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
  cells.reserve(scenario.arms.size());
  for (const ArmReport& arm : scenario.arms) cells.push_back(cells_of(scenario, arm, shared));
  const Widths widths = fitted(widths_of(cells), page.options().width);
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
