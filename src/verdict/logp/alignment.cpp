// SPDX-License-Identifier: Apache-2.0
#include "verdict/logp/alignment.h"

#include <algorithm>
#include <cmath>

namespace gradcheck {
namespace {

constexpr double kWorthALook = 0.05;  // mean |delta| of a dump or row that may be misplaced
constexpr double kBetter = 0.2;       // of the difference at its own place
constexpr std::int64_t kFewest = 16;
constexpr std::size_t kMostRows = 256;        // compared with each other
constexpr std::int64_t kMostTokens = 400000;  // looked at for a lag

struct Row {
  const LogProbShard* shard = nullptr;
  std::size_t row = 0;
  std::vector<std::size_t> tokens;  // compared ones
};

void add_pairs(const LogProbShard& shard, std::size_t row, LagFit& fit) {
  const auto begin = static_cast<std::ptrdiff_t>(shard.offsets[row]);
  const auto end = static_cast<std::ptrdiff_t>(shard.offsets[row + 1]);
  for (std::ptrdiff_t i = begin; i < end; ++i) {
    const std::ptrdiff_t j = i + fit.lag;
    if (j < begin || j >= end) continue;
    const auto own = static_cast<std::size_t>(i);
    const auto other = static_cast<std::size_t>(j);
    if (!is_compared(shard, own) || !is_compared(shard, other)) continue;
    fit.mean_abs += std::fabs(shard.new_values[own] - shard.old_values[other]);
    ++fit.tokens;
  }
}

LagFit fit_at(const LogProbFacts& facts, int lag) {
  LagFit fit{lag, 0, 0};
  for (const RowSums& row : facts.sums.rows) {
    if (fit.tokens > kMostTokens) break;
    add_pairs(*row.shard, row.row, fit);
  }
  if (fit.tokens > 0) fit.mean_abs /= static_cast<double>(fit.tokens);
  return fit;
}

Row row_of(const RowSums& from) {
  Row row{from.shard, from.row, {}};
  for_each_compared(*from.shard, from.row, [&](std::size_t i) { row.tokens.push_back(i); });
  return row;
}

// Rows far from their own old values, the farthest first.
std::vector<Row> suspects(const LogProbFacts& facts) {
  std::vector<const RowSums*> far;
  for (const RowSums& row : facts.sums.rows) {
    if (row.sums.mean_abs() >= 4 * kWorthALook) far.push_back(&row);
  }
  std::stable_sort(far.begin(), far.end(), [](const RowSums* a, const RowSums* b) {
    return a->sums.mean_abs() > b->sums.mean_abs();
  });
  if (far.size() > kMostRows) far.resize(kMostRows);
  std::vector<Row> rows;
  for (const RowSums* row : far) rows.push_back(row_of(*row));
  return rows;
}

// Σ|new of a − old of b|, token by token over the shorter one; gives up above `most`.
double distance(const Row& a, const Row& b, double most) {
  double sum = 0;
  const std::size_t shared = std::min(a.tokens.size(), b.tokens.size());
  for (std::size_t i = 0; i < shared && sum <= most; ++i) {
    sum += std::fabs(a.shard->new_values[a.tokens[i]] - b.shard->old_values[b.tokens[i]]);
  }
  return sum;
}

// Rows whose masks moved with old (or with new) may differ in length by a few tokens.
bool are_alike(const Row& a, const Row& b) {
  const std::size_t shorter = std::min(a.tokens.size(), b.tokens.size());
  return shorter >= 8 && 2 * shorter >= std::max(a.tokens.size(), b.tokens.size());
}

void add_match(const std::vector<Row>& rows, std::size_t index, RowOrder& order) {
  const Row& row = rows[index];
  const double own = distance(row, row, INFINITY);
  double best = own * kBetter;
  const Row* match = nullptr;
  for (const Row& other : rows) {
    if (&other == &row || !are_alike(row, other)) continue;
    const double d = distance(row, other, best);
    if (d < best) best = d, match = &other;
  }
  if (match == nullptr) return;
  if (order.rows == 0) {
    order.first_row = static_cast<std::int64_t>(row.row);
    order.first_match = static_cast<std::int64_t>(match->row);
  }
  ++order.rows;
  order.tokens += static_cast<std::int64_t>(row.tokens.size());
  order.absolute += own;
  order.residual += best;
  order.ranks.push_back(row.shard->rank);
}

// Index into the row's compared tokens from which it differs; none if it differs from its start,
// nowhere, or on and off.
std::optional<std::size_t> onset_of(const LogProbFacts& facts, const Row& row) {
  const double bound = std::max(10 * facts.statistics.p50, 0.02);
  std::vector<bool> big;
  for (const std::size_t i : row.tokens) big.push_back(std::fabs(delta_at(*row.shard, i)) > bound);
  const auto first = std::find(big.begin(), big.end(), true) - big.begin();
  const auto rest = static_cast<std::ptrdiff_t>(big.size()) - first;
  const auto count = std::count(big.begin(), big.end(), true);
  const bool lasts = rest >= 4 && 2 * count >= rest;
  if (first == 0 || !lasts) return std::nullopt;
  return static_cast<std::size_t>(first);
}

}  // namespace

std::optional<LagFit> better_lag(const LogProbFacts& facts) {
  if (facts.statistics.mean_abs < kWorthALook) return std::nullopt;
  const LagFit own = fit_at(facts, 0);
  std::optional<LagFit> best;
  for (const int lag : {1, -1, 2, -2}) {
    const LagFit fit = fit_at(facts, lag);
    const bool fits = fit.tokens >= kFewest && fit.mean_abs <= kBetter * own.mean_abs;
    if (fits && (!best || fit.mean_abs < best->mean_abs)) best = fit;
  }
  return best;
}

RowOrder misplaced_rows(const LogProbFacts& facts) {
  RowOrder order;
  const std::vector<Row> rows = suspects(facts);
  for (std::size_t i = 0; i < rows.size(); ++i) add_match(rows, i, order);
  std::sort(order.ranks.begin(), order.ranks.end());
  order.ranks.erase(std::unique(order.ranks.begin(), order.ranks.end()), order.ranks.end());
  return order;
}

Onsets onsets(const LogProbFacts& facts) {
  Onsets found;
  for (const RowSums& sums : facts.sums.rows) {
    if (sums.sums.mean_abs() < std::max(2 * facts.statistics.p50, 0.01)) continue;
    const Row row = row_of(sums);
    const auto onset = onset_of(facts, row);
    if (!onset) continue;
    if (found.rows == 0) {
      found.first_row = static_cast<std::int64_t>(row.row);
      found.first_position = static_cast<std::int64_t>(*onset);
    }
    ++found.rows;
    for (std::size_t i = *onset; i < row.tokens.size(); ++i) {
      const double delta = delta_at(*row.shard, row.tokens[i]);
      add_token(found.tails, row.shard->old_values[row.tokens[i]], delta, std::expm1(delta));
    }
  }
  return found;
}

}  // namespace gradcheck
