// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "model/log_probs.h"
#include "tests/support/toy_policy.h"

namespace gradcheck::toy {

// One generated dump and the answer it must get.
struct Case {
  std::string name;
  std::string about;           // one clause for docs/logp.md
  std::optional<Cause> cause;  // first in the list; unset: healthy
  Outcome outcome = Outcome::inconsistent;
  LogProbConditions conditions;
  std::function<std::vector<LogProbShard>()> make;
};

inline void PrintTo(const Case& printed, std::ostream* out) { *out << printed.name; }

struct Layout {
  std::size_t rows = 48;
  std::size_t shortest = 40, longest = 64;
  unsigned seed = 7;
};

// Length of a row's response.
inline std::size_t length_of(const Layout& layout, std::size_t row) {
  const std::size_t spread = layout.longest - layout.shortest + 1;
  return layout.shortest + (row * 7919 + layout.seed) % spread;
}

// What the three passes of one dump are, and what else happens to its hidden states.
struct Recipe {
  Pass sampling;  // of the tokens
  Pass old_pass;
  Pass new_pass;
  Layout layout;
  // Change of the new pass's hidden state at (row, position).
  std::function<double(std::size_t, std::size_t)> shift;
};

inline LogProbShard made(const Recipe& recipe) {
  const Policy policy(recipe.layout.seed);
  LogProbShard shard;
  shard.offsets.push_back(0);
  for (std::size_t row = 0; row < recipe.layout.rows; ++row) {
    for (std::size_t t = 0; t < length_of(recipe.layout, row); ++t) {
      const Place place{row, t};
      std::mt19937_64 random = policy.random_at(place, 3);
      const std::size_t token =
          sample(policy.logits(place, recipe.sampling), recipe.sampling, random);
      const double away = recipe.shift ? recipe.shift(row, t) : 0;
      const auto fresh = policy.logits(place, recipe.new_pass, away);
      shard.old_values.push_back(
          log_prob(policy.logits(place, recipe.old_pass), token, recipe.old_pass));
      shard.new_values.push_back(log_prob(fresh, token, recipe.new_pass));
      shard.entropy.push_back(entropy(fresh));
      shard.token_ids.push_back(static_cast<std::int64_t>(token));
    }
    shard.offsets.push_back(shard.old_values.size());
  }
  return shard;
}

// The same passes over `ranks` ranks, each with data of its own; `change` may spoil one of them.
inline std::vector<LogProbShard> made_on_ranks(
    const Recipe& recipe, int ranks, const std::function<void(int, Recipe&)>& change = {}) {
  std::vector<LogProbShard> shards;
  for (int rank = 0; rank < ranks; ++rank) {
    Recipe own = recipe;
    own.layout.seed += static_cast<unsigned>(rank) * 13;
    if (change) change(rank, own);
    shards.push_back(made(own));
    shards.back().rank = rank;
  }
  return shards;
}

// What tests do to the arrays afterwards.

using Edit = std::function<void(LogProbShard&)>;

inline std::vector<LogProbShard> edited(LogProbShard shard, const Edit& edit) {
  edit(shard);
  return {std::move(shard)};
}

template <class Visit>
void for_each_row(const LogProbShard& shard, Visit&& visit) {
  for (std::size_t row = 0; row + 1 < shard.offsets.size(); ++row) {
    visit(row, shard.offsets[row], shard.offsets[row + 1]);
  }
}

inline void without_entropy(LogProbShard& shard) { shard.entropy.clear(); }

// Old moved by one inside each row; the first token of a row gets `filler`.
inline void shift_old(LogProbShard& shard, double filler) {
  for_each_row(shard, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = end - 1; i > begin; --i) shard.old_values[i] = shard.old_values[i - 1];
    shard.old_values[begin] = filler;
  });
}

// Puts `widths[row]` masked tokens before each row.
inline void pad_left(LogProbShard& shard, const std::vector<std::size_t>& widths) {
  LogProbShard padded = shard;
  padded.offsets = {0};
  padded.old_values.clear(), padded.new_values.clear();
  padded.entropy.clear(), padded.token_ids.clear();
  for_each_row(shard, [&](std::size_t row, std::size_t begin, std::size_t end) {
    padded.old_values.insert(padded.old_values.end(), widths[row], 0.0);
    padded.new_values.insert(padded.new_values.end(), widths[row], 0.0);
    padded.mask.insert(padded.mask.end(), widths[row], 0);
    for (std::size_t i = begin; i < end; ++i) {
      padded.old_values.push_back(shard.old_values[i]);
      padded.new_values.push_back(shard.new_values[i]);
      padded.mask.push_back(1);
    }
    padded.offsets.push_back(padded.old_values.size());
  });
  shard = std::move(padded);
}

using Cases = std::vector<Case> (*)();

inline std::vector<Case> gathered(std::initializer_list<Cases> tables) {
  std::vector<Case> cases;
  for (const Cases table : tables) {
    for (Case& made : table()) cases.push_back(std::move(made));
  }
  return cases;
}

}  // namespace gradcheck::toy
