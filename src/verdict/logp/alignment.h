// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "verdict/logp/facts.h"

namespace gradcheck {

// How well new fits old `lag` tokens later in the same row: mean |new_t − old_{t+lag}| over pairs
// that are both compared.
struct LagFit {
  int lag = 0;
  std::int64_t tokens = 0;
  double mean_abs = 0;
};

// Of the lags −2 … 2 other than 0 the best one, if it fits at least five times better than 0.
std::optional<LagFit> better_lag(const LogProbFacts& facts);

// Rows that do not fit their own old row but another one of the same length.
struct RowOrder {
  std::int64_t rows = 0;
  std::int64_t tokens = 0;
  double absolute = 0;  // Σ|delta| of these rows, as they stand
  double residual = 0;  // the same when matched
  std::vector<int> ranks;
  std::int64_t first_row = 0, first_match = 0;  // of the first one
};
RowOrder misplaced_rows(const LogProbFacts& facts);

// Rows equal up to some position and different from there to their end.
struct Onsets {
  std::int64_t rows = 0;
  DeltaSums tails;  // of the tokens from the onsets on
  std::int64_t first_row = 0, first_position = 0;
};
Onsets onsets(const LogProbFacts& facts);

}  // namespace gradcheck
