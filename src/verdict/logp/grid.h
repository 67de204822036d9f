// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

#include "verdict/logp/tokens.h"

namespace gradcheck {

// Numbers that a low-precision computation leaves behind and an fp32 one meets by chance only:
// once in 2^16 tokens for bf16, 2^13 for f16, about 2^12 for a logarithm, 2^8 for a difference.
enum class Grid : std::uint8_t {
  none,
  bf16,         // every value is a bf16 number
  f16,          // every value is an f16 number
  log_of_bf16,  // every value is the logarithm of a bf16 probability
  log_of_f16,
  bf16_difference,       // every value is the difference of two bf16 numbers: logit − logsumexp
  bf16_wide_difference,  // the same where both are above 1; read as bf16_difference
};

std::string_view name_of(Grid grid);

struct SideGrid {
  Grid grid = Grid::none;
  std::int64_t tokens = 0;  // that could tell: 0, −0.5 or −1 lie on every grid and are left out
  double share = 0;         // of these, on the grid
};

enum class Side : std::uint8_t { old_side, new_side };

// A side is on a grid if at least 16 telling values and 99.9 % of them are (95 % of the widest
// one, which is looked at first); bf16 before f16 before the others.
SideGrid grid_of(Shards shards, Side side);

// Mean |rounding error| that storing a side on its grid makes: a quarter of the distance between
// neighbours, over the compared tokens. 0 for Grid::none.
double mean_rounding(Shards shards, Side side, Grid grid);

// Share of compared tokens whose `side` is the other side rounded to the grid, bit for bit.
double share_explained(Shards shards, Side side, Grid grid);

}  // namespace gradcheck
