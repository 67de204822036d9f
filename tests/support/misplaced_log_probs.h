// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <limits>

#include "tests/support/broken_log_probs.h"

namespace gradcheck::toy {

// Log-probs that are absent, stand at other tokens or come from other weights.

inline std::vector<LogProbShard> spoiled(const Edit& edit) {
  return from([](Recipe& r) { r.new_pass.logit_noise = 0.01; },
              [&](LogProbShard& s) {
                without_entropy(s);
                edit(s);
              });
}

inline void zero_last(LogProbShard& shard) {
  for_each_row(shard,
               [&](std::size_t, std::size_t, std::size_t end) { shard.old_values[end - 1] = 0; });
}

inline void zero_rows(LogProbShard& shard) {
  for_each_row(shard, [&](std::size_t row, std::size_t begin, std::size_t end) {
    if (row % 8 != 3) return;
    for (std::size_t i = begin; i < end; ++i) shard.old_values[i] = 0;
  });
}

// Text of a tool inside every fourth row: unlikely to the policy, never scored by the engine.
inline void tool_spans(LogProbShard& shard) {
  for_each_row(shard, [&](std::size_t row, std::size_t begin, std::size_t) {
    if (row % 4 != 1) return;
    for (std::size_t i = begin + 10; i < begin + 20; ++i) {
      shard.old_values[i] = 0;
      shard.new_values[i] -= 12;
    }
  });
}

// The likeliest token's log-prob in place of the sampled one's, where another was sampled.
inline std::vector<LogProbShard> first_entries() {
  const Recipe recipe;
  LogProbShard shard = made(recipe);
  without_entropy(shard);
  const Policy policy(recipe.layout.seed);
  for_each_row(shard, [&](std::size_t row, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i += 3) {
      const auto logits = policy.logits({row, i - begin}, recipe.old_pass);
      const double top = *std::max_element(logits.begin(), logits.end());
      shard.old_values[i] = as_f32(top - logsumexp(logits));
    }
  });
  return {shard};
}

// From some token on, three rows are another text.
inline void retokenise(LogProbShard& shard) {
  for_each_row(shard, [&](std::size_t row, std::size_t begin, std::size_t end) {
    if (row % 16 != 5) return;
    std::mt19937_64 random(row);
    std::exponential_distribution<double> surprisal(0.3);
    for (std::size_t i = begin + 15; i < end; ++i) {
      shard.new_values[i] = as_f32(shard.new_values[i] - 1 - surprisal(random));
    }
  });
}

// Old of row a and of row b change places; rows may differ in length, so lengths are made equal.
inline std::vector<LogProbShard> swapped_rows(bool all) {
  return from([](Recipe& r) { r.layout.shortest = r.layout.longest; },
              [all](LogProbShard& s) {
                without_entropy(s);
                const std::size_t width = Layout{}.longest;
                const std::size_t pairs = all ? Layout{}.rows / 2 : 1;
                for (std::size_t pair = 0; pair < pairs; ++pair) {
                  const auto a =
                      s.old_values.begin() + static_cast<std::ptrdiff_t>(2 * pair * width);
                  std::swap_ranges(a, a + static_cast<std::ptrdiff_t>(width),
                                   a + static_cast<std::ptrdiff_t>(width));
                }
              });
}

inline std::vector<Case> absent_cases() {
  return {
      {"off by one",
       "old moved by one token",
       Cause::shift,
       Outcome::inconsistent,
       {},
       [] { return spoiled([](LogProbShard& s) { shift_old(s, -2.5); }); }},
      {"absent at the front",
       "old moved by one token, 0.0 in front",
       Cause::missing_as_zero,
       Outcome::inconsistent,
       {},
       [] { return spoiled([](LogProbShard& s) { shift_old(s, 0); }); }},
      {"absent at the end",
       "the last token of each row has old 0.0",
       Cause::missing_as_zero,
       Outcome::inconsistent,
       {},
       [] { return spoiled(zero_last); }},
      {"absent rows",
       "one row in eight has old 0.0",
       Cause::missing_as_zero,
       Outcome::inconsistent,
       {},
       [] { return spoiled(zero_rows); }},
      {"tool tokens inside the mask",
       "spans with old 0.0 and new near −14",
       Cause::missing_as_zero,
       Outcome::inconsistent,
       {},
       [] { return spoiled(tool_spans); }},
  };
}

inline std::vector<Case> order_cases() {
  return {
      {"two rows swapped",
       "two of 48 rows in each other's place",
       Cause::row_order,
       Outcome::inconsistent,
       {},
       [] { return swapped_rows(false); }},
      {"all rows swapped",
       "every row in its neighbour's place",
       Cause::row_order,
       Outcome::inconsistent,
       {},
       [] { return swapped_rows(true); }},
      {"first entry of the dictionary",
       "old of the likeliest token, for a third of the tokens",
       Cause::wrong_token,
       Outcome::inconsistent,
       {},
       first_entries},
      {"tokenised again",
       "three rows are another text from token 15 on",
       Cause::retokenised,
       Outcome::inconsistent,
       {},
       [] { return spoiled(retokenise); }},
      {"NaN logits",
       "one row of new is NaN",
       Cause::nonfinite_logits,
       Outcome::inconsistent,
       {},
       [] {
         return spoiled([](LogProbShard& s) {
           std::fill_n(s.new_values.begin() + 64, 40, std::numeric_limits<double>::quiet_NaN());
         });
       }},
  };
}

inline std::vector<Case> weight_cases() {
  return {
      {"an update between old and new",
       "one optimizer step was counted",
       Cause::after_an_update,
       Outcome::inconclusive,
       {},
       [] { return spoiled([](LogProbShard& s) { s.updates = 1; }); }},
      {"one stale engine of eight",
       "rank 3 has other weights, the others are equal",
       Cause::stale_weights,
       Outcome::inconsistent,
       {},
       [] {
         Recipe recipe;
         recipe.layout.rows = 12;
         auto shards = made_on_ranks(recipe, 8, [](int rank, Recipe& r) {
           if (rank == 3) r.new_pass.weight_noise = 0.08;
         });
         for (LogProbShard& shard : shards) without_entropy(shard);
         return shards;
       }},
      {"every engine stale",
       "all ranks have other weights",
       Cause::stale_weights,
       Outcome::inconsistent,
       {},
       [] { return with_new([](Pass& p) { p.weight_noise = 0.08; }); }},
      {"4-bit weights", "the rollout's weights are coarse", Cause::quantised_rollout,
       Outcome::inconsistent, in_regime(Regime::quantised),
       [] { return with_new([](Pass& p) { p.weight_noise = 0.12; }); }},
  };
}

inline std::vector<Case> broken_cases() {
  return gathered({precision_cases, temperature_cases, sampling_cases, dropout_cases, kernel_cases,
                   padding_cases, forward_cases, absent_cases, order_cases, weight_cases});
}

}  // namespace gradcheck::toy
