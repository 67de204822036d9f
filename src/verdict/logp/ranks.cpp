// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "verdict/logp/signs.h"

namespace gradcheck {
namespace {

constexpr double kTimes = 3;             // mean |delta| of one rank over that of all others
constexpr std::int64_t kFewestRows = 4;  // whose spread says how sure that is
constexpr double kSigmas = 6;

struct Spread {
  double n = 0, sum = 0, square = 0;
  void add(double x) { ++n, sum += x, square += x * x; }
  double mean() const { return n > 0 ? sum / n : 0; }
  double error() const {
    if (n < 2) return INFINITY;
    const double variance = std::max(0.0, square / n - mean() * mean()) * n / (n - 1);
    return std::sqrt(variance / n);
  }
};

struct Apart {
  Spread own, others;  // of rows' mean |delta|
};

Apart apart(const LogProbFacts& facts, int rank) {
  Apart result;
  for (const RowSums& row : facts.sums.rows) {
    (row.shard->rank == rank ? result.own : result.others).add(row.sums.mean_abs());
  }
  return result;
}

bool stands_out(const Apart& rows) {
  const double error = std::hypot(rows.own.error(), rows.others.error());
  return rows.own.n >= kFewestRows && rows.others.n >= kFewestRows &&
         rows.own.mean() >= kTimes * rows.others.mean() &&
         rows.own.mean() - rows.others.mean() >= kSigmas * error;
}

Sign rank_sign(const LogProbFacts& facts, const RankSums& rank, const Apart& rows) {
  Sign sign;
  sign.code = 507;
  sign.ranks = {rank.rank};
  sign.count = static_cast<std::uint64_t>(rank.sums.tokens);
  sign.explains = rank.sums.absolute / facts.sums.all.absolute;
  sign.signature = {
      "rank", Confidence::certain, false,
      fmt::format("rank {}: mean |Δ| {}, other ranks {}", rank.rank,
                  number_text(rank.sums.mean_abs()), number_text(rows.others.mean()))};
  sign.claim = claim_of(Cause::stale_weights, Confidence::likely,
                        {sign.signature.text, fmt::format("the mean over all ranks, {}, hides it",
                                                          number_text(facts.statistics.mean_abs))},
                        {"another kernel or precision on that rank"});
  return sign;
}

}  // namespace

std::vector<Sign> see_ranks(const LogProbFacts& facts) {
  std::vector<Sign> signs;
  if (facts.ranks.size() < 2) return signs;
  for (const RankSums& rank : facts.ranks) {
    // Judged by the band of all: what would pass everywhere is no fault of one.
    if (level_of(facts, rank.sums) < BandLevel::warning) continue;
    const Apart rows = apart(facts, rank.rank);
    if (stands_out(rows)) signs.push_back(rank_sign(facts, rank, rows));
  }
  return signs;
}

}  // namespace gradcheck
