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

double value_of(const LogProbShard& shard, std::size_t i, Side side) {
  return side == Side::old_side ? shard.old_values[i] : shard.new_values[i];
}

// Renormalised over kept tokens, a side is exactly 0 where one token alone was kept, to which the
// other side may give the smallest kept mass: as far as the tokens that are not 0 go, all of them
// to one side.
double renormalised_bound(const LogProbFacts& facts, Side side, Side other) {
  std::int64_t below = 0, tokens = 0;
  double lowest = 0;
  for_each_token(facts.shards, [&](const LogProbShard& shard, std::size_t i) {
    const double own = value_of(shard, i, side);
    if (own == 0) return;
    const double difference = value_of(shard, i, other) - own;
    ++tokens;
    below += difference < -1e-6 ? 1 : 0;
    lowest = std::min(lowest, difference);
  });
  return tokens >= 16 && 10 * below >= 9 * tokens ? 1.01 * lowest : 0;
}

double bound_for(const LogProbFacts& facts, Side side, Side other) {
  const SideGrid& grid = side == Side::old_side ? facts.old_grid : facts.new_grid;
  const double bound = grid.grid == Grid::none ? kNeverComputed : kNeverComputedCoarse;
  const double kept = side == Side::old_side ? facts.conditions.top_p.value_or(1) : 1;
  return std::min({bound, 1.01 * std::log(kept), renormalised_bound(facts, side, other)});
}

Zeros zeros_of(const LogProbFacts& facts, Side side, Side other_side) {
  const std::int64_t exact = side == Side::old_side ? facts.counts.zero_old : facts.counts.zero_new;
  if (exact == 0) return {};
  const double bound = bound_for(facts, side, other_side);
  Zeros zeros;
  for_each_row(facts.shards, [&](const LogProbShard& shard, std::size_t row) {
    add_row(zeros, shard, row, [&](std::size_t i) {
      return value_of(shard, i, side) == 0 && value_of(shard, i, other_side) < bound;
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
  sign.signature = {zeros.first > 0 ? "missing_at_front" : "missing", Confidence::certain, false,
                    text};
  sign.claim = claim_of(Cause::missing_as_zero, Confidence::certain,
                        {text, where_text(zeros),
                         fmt::format("they hold {} of all |Δ|", percent_text(sign.explains))});
  return sign;
}

}  // namespace

std::vector<Sign> see_missing(const LogProbFacts& facts) {
  std::vector<Sign> signs;
  const Zeros old_zeros = zeros_of(facts, Side::old_side, Side::new_side);
  const Zeros new_zeros = zeros_of(facts, Side::new_side, Side::old_side);
  if (old_zeros.tokens > 0) signs.push_back(sign_of(facts, old_zeros, "old", "new"));
  if (new_zeros.tokens > 0) signs.push_back(sign_of(facts, new_zeros, "new", "old"));
  return signs;
}

}  // namespace gradcheck
