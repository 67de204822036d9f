// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "verdict/logp/signs.h"

namespace gradcheck {
namespace {

// A certain token reads exactly 0.0 from a gap of 17 nats (fp32) or 12 (bf16); one to which the
// other side gives less than 90 % was never computed. A coarse logsumexp makes zeros up to half its
// step, 0.25 at logits of 100.
constexpr double kNeverComputed = -0.1;
constexpr double kNeverComputedCoarse = -0.5;

struct Zeros {
  std::int64_t tokens = 0;
  std::int64_t first = 0, last = 0;  // at the row's first, last counting token or next to such
  std::int64_t whole_rows = 0;
  double other = 0;     // sum of the other side's log-probs there
  double absolute = 0;  // sum of |delta| there
  std::set<int> ranks;
};

template <class IsMissing>
void add_row(Zeros& zeros, const LogProbShard& shard, std::size_t row, IsMissing&& is_missing) {
  std::vector<bool> missing;
  for_each_compared(shard, row, [&](std::size_t i) {
    missing.push_back(is_missing(i));
    if (!missing.back()) return;
    zeros.other += std::min(shard.old_values[i], shard.new_values[i]);
    zeros.absolute += std::fabs(delta_at(shard, i));
    zeros.ranks.insert(shard.rank);
  });
  const auto all = std::count(missing.begin(), missing.end(), true);
  if (all == 0) return;
  zeros.tokens += all;
  const auto front = std::find(missing.begin(), missing.end(), false) - missing.begin();
  const auto back = std::find(missing.rbegin(), missing.rend(), false) - missing.rbegin();
  if (front == static_cast<std::ptrdiff_t>(missing.size())) {
    ++zeros.whole_rows;
    return;
  }
  zeros.first += front;
  zeros.last += back;
}

Zeros zeros_of(const LogProbFacts& facts, Side side) {
  const SideGrid& grid = side == Side::old_side ? facts.old_grid : facts.new_grid;
  const double bound = grid.grid == Grid::none ? kNeverComputed : kNeverComputedCoarse;
  Zeros zeros;
  for_each_row(facts.shards, [&](const LogProbShard& shard, std::size_t row) {
    add_row(zeros, shard, row, [&](std::size_t i) {
      const double own = side == Side::old_side ? shard.old_values[i] : shard.new_values[i];
      const double other = side == Side::old_side ? shard.new_values[i] : shard.old_values[i];
      return own == 0 && other < bound;
    });
  });
  return zeros;
}

std::string where_text(const Zeros& zeros) {
  std::string text;
  const auto say = [&](std::int64_t count, const char* where) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, where);
  };
  say(zeros.first, "at the front of their rows");
  say(zeros.last, "at the end of their rows");
  say(zeros.whole_rows, zeros.whole_rows == 1 ? "row as a whole" : "rows as a whole");
  return text.empty() ? "inside their rows: tokens that the mask should leave out, perhaps" : text;
}

Sign sign_of(const LogProbFacts& facts, const Zeros& zeros, const char* side, const char* other) {
  Sign sign;
  sign.code = 505;
  sign.ranks = {zeros.ranks.begin(), zeros.ranks.end()};
  sign.count = static_cast<std::uint64_t>(zeros.tokens);
  sign.explains = zeros.absolute / std::max(facts.sums.all.absolute, 1e-300);
  const std::string text =
      fmt::format("{} is exactly 0.0 at {} where {} is {} on average", side,
                  of_all_text(zeros.tokens, facts.counts.compared), other,
                  number_text(zeros.other / static_cast<double>(zeros.tokens)));
  sign.signature = {"missing", Confidence::certain, false, text};
  sign.claim = claim_of(Cause::missing_as_zero, Confidence::certain,
                        {text, where_text(zeros),
                         fmt::format("they hold {} of all |Δ|", percent_text(sign.explains))});
  return sign;
}

}  // namespace

std::vector<Sign> see_missing(const LogProbFacts& facts) {
  std::vector<Sign> signs;
  const Zeros old_zeros = zeros_of(facts, Side::old_side);
  const Zeros new_zeros = zeros_of(facts, Side::new_side);
  if (old_zeros.tokens > 0) signs.push_back(sign_of(facts, old_zeros, "old", "new"));
  if (new_zeros.tokens > 0) signs.push_back(sign_of(facts, new_zeros, "new", "old"));
  return signs;
}

}  // namespace gradcheck
