// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "verdict/logp/signs.h"

namespace gradcheck {
namespace {

std::string words_for(Grid grid) {
  switch (grid) {
    case Grid::bf16:
      return "stored in bf16";
    case Grid::f16:
      return "stored in f16";
    case Grid::log_of_bf16:
      return "the logarithm of a softmax stored in bf16";
    case Grid::log_of_f16:
      return "the logarithm of a softmax stored in f16";
    case Grid::bf16_difference:
    case Grid::bf16_wide_difference:
      return "a bf16 logit minus a bf16 logsumexp";
    case Grid::none:
      break;
  }
  return "of full precision";
}

Cause cause_for(Grid grid) {
  return grid == Grid::bf16_difference ? Cause::low_precision_logsumexp : Cause::bf16_log_softmax;
}

// What storing one side coarsely can account for; all of it where no more than its own size is
// left over.
double explained_by_rounding(const LogProbFacts& facts) {
  const double mean = facts.statistics.mean_abs;
  if (mean == 0) return 1;
  // The step is that of a logsumexp nobody recorded: half of it, for logits up to 128, is 0.5.
  const bool is_difference =
      facts.new_grid.grid == Grid::bf16_difference || facts.old_grid.grid == Grid::bf16_difference;
  if (is_difference) return facts.statistics.max_abs <= 0.5 ? 1 : 0.1;
  return facts.rounding > 0 && mean <= 3 * facts.rounding ? 1
                                                          : std::min(1.0, facts.rounding / mean);
}

// A certain signature is a fault of one's own program; of an engine that may send coarse numbers it
// is a warning below the noise floor (verdicts.md §9).
Severity severity_of(const LogProbFacts& facts) {
  const Regime regime = facts.regime.regime;
  if (regime == Regime::same_kernels || regime == Regime::same_stack) return Severity::error;
  const bool quiet = level_in(facts.band, facts.statistics) <= BandLevel::note;
  return quiet ? Severity::warning : Severity::error;
}

std::vector<std::string> evidence_of(const LogProbFacts& facts, const SideGrid& grid, Side side) {
  std::vector<std::string> evidence;
  evidence.push_back(
      fmt::format("{} of {} telling values lie on the grid; an fp32 value does so by "
                  "chance once in 256 at most",
                  percent_text(grid.share), grid.tokens));
  const double exact = share_explained(facts.shards, side, grid.grid);
  if (exact > 0) {
    evidence.push_back(fmt::format("{} of the tokens are the other side rounded, bit for bit",
                                   percent_text(exact)));
  }
  evidence.push_back(fmt::format("rounding alone makes a mean |Δ| of {}; seen is {}",
                                 number_text(facts.rounding),
                                 number_text(facts.statistics.mean_abs)));
  return evidence;
}

Sign one_side(const LogProbFacts& facts) {
  const bool is_new = facts.new_grid.grid != Grid::none;
  const SideGrid& grid = is_new ? facts.new_grid : facts.old_grid;
  const Side side = is_new ? Side::new_side : Side::old_side;
  Sign sign;
  sign.code = 502;
  sign.severity = severity_of(facts);
  sign.signature = {"grid", Confidence::certain, false,
                    fmt::format("{} was {}, {} was not", is_new ? "new" : "old",
                                words_for(grid.grid), is_new ? "old" : "new")};
  sign.explains = explained_by_rounding(facts);
  sign.claim = claim_of(cause_for(grid.grid), Confidence::certain, evidence_of(facts, grid, side));
  return sign;
}

Sign both_sides(const LogProbFacts& facts) {
  const bool alike = facts.old_grid.grid == facts.new_grid.grid;
  const std::string text =
      alike ? fmt::format("old and new were both {}", words_for(facts.old_grid.grid))
            : fmt::format("old was {}, new was {}", words_for(facts.old_grid.grid),
                          words_for(facts.new_grid.grid));
  Sign sign;
  sign.signature = {"grid", Confidence::certain, false, text};
  sign.explains = explained_by_rounding(facts);
  if (facts.bitwise()) return sign;
  sign.code = 502;
  sign.severity = alike ? Severity::note : Severity::warning;
  sign.claim = claim_of(Cause::bf16_log_softmax, Confidence::likely,
                        {text + ": differences are multiples of the grid's step"});
  return sign;
}

}  // namespace

std::vector<Sign> see_precision(const LogProbFacts& facts) {
  const bool none = facts.old_grid.grid == Grid::none && facts.new_grid.grid == Grid::none;
  if (none || facts.counts.compared == 0) return {};
  return {facts.one_side_on_grid() ? one_side(facts) : both_sides(facts)};
}

}  // namespace gradcheck
