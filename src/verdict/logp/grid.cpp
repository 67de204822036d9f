// SPDX-License-Identifier: Apache-2.0
#include "verdict/logp/grid.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/names.h"

namespace gradcheck {
namespace {

constexpr std::int64_t kTellingTokens = 16;
constexpr double kShare = 0.999;
constexpr double kWideShare = 0.95;  // some logits lie below 1 and have finer steps
constexpr Grid kOrder[] = {Grid::bf16_wide_difference, Grid::bf16,       Grid::f16,
                           Grid::log_of_bf16,          Grid::log_of_f16, Grid::bf16_difference};

constexpr std::array<std::string_view, 7> kGrids = {"none",
                                                    "bf16",
                                                    "f16",
                                                    "log of bf16",
                                                    "log of f16",
                                                    "difference of bf16 numbers",
                                                    "difference of bf16 numbers"};

constexpr int kBf16Bits = 8;  // of the significand, the hidden one included
constexpr int kF16Bits = 11;
constexpr int kF16Lowest = -24;  // exponent of its smallest subnormal

double rounded_to(double value, int bits, int lowest) {
  if (value == 0) return 0;
  const int step = std::max(std::ilogb(value) - (bits - 1), lowest);
  return std::ldexp(std::nearbyint(std::ldexp(value, -step)), step);
}

double to_bf16(double value) { return rounded_to(value, kBf16Bits, -133); }
double to_f16(double value) { return rounded_to(value, kF16Bits, kF16Lowest); }

// Few significant bits: on the grid however it was computed.
bool tells_nothing(double value) { return rounded_to(value, 4, -133) == value; }

// The logarithm of a low-precision number, up to fp32's rounding of the logarithm itself.
bool is_log_of(double value, double (*round)(double)) {
  const double p = std::exp(value);
  const double error = std::fabs(round(p) - p);
  return error <= p * 0x1p-23 * (1 + std::fabs(value));
}

// Steps of a difference of two bf16 numbers. Both above 1 leave multiples of 2^-7, which a bf16
// log-prob below 0.5 is not; a small logit leaves multiples of 2^-14 at least, where fp32 has
// 2^-22.
constexpr int kWideStep = 7;
constexpr int kNarrowStep = 14;

bool is_multiple(double value, int bits) {
  const double scaled = std::ldexp(value, bits);
  return scaled == std::nearbyint(scaled);
}

bool is_on(Grid grid, double value) {
  switch (grid) {
    case Grid::bf16:
      return to_bf16(value) == value;
    case Grid::f16:
      return to_f16(value) == value;
    case Grid::log_of_bf16:
      return is_log_of(value, to_bf16);
    case Grid::log_of_f16:
      return is_log_of(value, to_f16);
    case Grid::bf16_difference:
      return is_multiple(value, kNarrowStep);
    case Grid::bf16_wide_difference:
      return is_multiple(value, kWideStep);
    case Grid::none:
      break;
  }
  return false;
}

// Tiny magnitudes are coarse by themselves on an absolute grid, and the logarithm of a number close
// to 1 says little about the number.
bool is_telling(Grid grid, double value) {
  const double magnitude = std::fabs(value);
  if (grid == Grid::bf16 || grid == Grid::f16) return !tells_nothing(value);
  if (grid == Grid::bf16_difference) return magnitude >= 0x1p-6 && !tells_nothing(value);
  if (grid == Grid::bf16_wide_difference) return magnitude > 0 && magnitude < 0.5;
  return magnitude >= 0x1p-6 && magnitude <= 16;
}

double value_at(const LogProbShard& shard, std::size_t i, Side side) {
  return side == Side::old_side ? shard.old_values[i] : shard.new_values[i];
}

// More than a handful off the grid settles it; the rest need not be looked at.
bool is_settled(std::int64_t off, std::int64_t tokens) {
  return off > 64 && static_cast<double>(off) > 0.1 * static_cast<double>(tokens);
}

SideGrid measured(Shards shards, Side side, Grid grid) {
  SideGrid result{grid, 0, 0};
  std::int64_t off = 0;
  for (const LogProbShard* shard : shards) {
    for (std::size_t i = 0; i < shard->old_values.size(); ++i) {
      if (is_settled(off, result.tokens)) return {};
      if (!is_compared(*shard, i)) continue;
      const double value = value_at(*shard, i, side);
      if (!is_telling(grid, value)) continue;
      ++result.tokens;
      off += is_on(grid, value) ? 0 : 1;
    }
  }
  const auto tokens = static_cast<double>(result.tokens);
  if (tokens > 0) result.share = 1 - static_cast<double>(off) / tokens;
  return result;
}

double step_of(Grid grid, double value) {
  const int bits = grid == Grid::f16 || grid == Grid::log_of_f16 ? kF16Bits : kBf16Bits;
  const bool is_log = grid == Grid::log_of_bf16 || grid == Grid::log_of_f16;
  const double magnitude = is_log ? std::exp(value) : std::fabs(value);
  if (magnitude == 0) return 0;
  const double step = std::ldexp(1.0, std::ilogb(magnitude) - (bits - 1));
  return is_log ? step / magnitude : step;
}

}  // namespace

std::string_view name_of(Grid grid) { return name_at(kGrids, grid); }

SideGrid grid_of(Shards shards, Side side) {
  for (const Grid grid : kOrder) {
    SideGrid found = measured(shards, side, grid);
    const double enough = grid == Grid::bf16_wide_difference ? kWideShare : kShare;
    if (found.tokens < kTellingTokens || !(found.share >= enough)) continue;
    if (grid == Grid::bf16_wide_difference) found.grid = Grid::bf16_difference;
    return found;
  }
  return {};
}

double mean_rounding(Shards shards, Side side, Grid grid) {
  if (grid == Grid::none) return 0;
  double sum = 0;
  double tokens = 0;
  for_each_token(shards, [&](const LogProbShard& shard, std::size_t i) {
    sum += step_of(grid, value_at(shard, i, side)) / 4;
    ++tokens;
  });
  return tokens > 0 ? sum / tokens : 0;
}

double share_explained(Shards shards, Side side, Grid grid) {
  if (grid != Grid::bf16 && grid != Grid::f16) return 0;
  double same = 0, tokens = 0;
  for_each_token(shards, [&](const LogProbShard& shard, std::size_t i) {
    const double of_side = value_at(shard, i, side);
    const double other = side == Side::old_side ? shard.new_values[i] : shard.old_values[i];
    same += (grid == Grid::bf16 ? to_bf16(other) : to_f16(other)) == of_side ? 1 : 0;
    ++tokens;
  });
  return tokens > 0 ? same / tokens : 0;
}

}  // namespace gradcheck
