// SPDX-License-Identifier: Apache-2.0
#include "numeric/kernel_portable.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "numeric/widen.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gradcheck {
namespace {

void count_nonfinite(Lanes& lanes, double x) {
  const bool is_nan = std::isnan(x);
  lanes.nan += is_nan;
  lanes.inf += !is_nan;
}

// Flips the sign of `x` where bit `lane` of the block's hash is set.
double with_sign(double x, std::uint64_t hash, unsigned lane) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) ^ (hash >> lane << 63));
}

void add_sums(Lanes& lanes, const double (&x)[kLanes], std::uint64_t hash) {
  const unsigned r = (hash >> 32) & 31;
  double placed[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    placed[lane ^ r] = with_sign(x[lane], hash, lane);
  }
  for (unsigned lane = 0; lane < kLanes; ++lane) lanes.l1[lane] += std::fabs(x[lane]);
  for (unsigned lane = 0; lane < kLanes; ++lane) lanes.squares[lane] += x[lane] * x[lane];
  for (unsigned k = 0; k < kLanes; ++k) lanes.sketch[k] += placed[k];
}

// Elements of one block, from lane `begin` to before lane `end`. The other lanes add zero, and so
// does an element that is not finite.
template <class Type>
void add_block(Lanes& lanes, const std::byte* data, std::uint64_t block, unsigned begin,
               unsigned end) {
  using Bits = typename Type::Bits;
  double x[kLanes] = {};
  double min = lanes.min;  // locals: kept in registers, as `lanes` could not be
  double max = lanes.max;
  for (unsigned lane = begin; lane < end; ++lane, data += sizeof(Bits)) {
    const double value = Type::widen(load_bits<Bits>(data));
    if (!std::isfinite(value)) {
      count_nonfinite(lanes, value);
      continue;
    }
    x[lane] = value;
    min = std::min(min, value);
    max = std::max(max, value);
    lanes.zeros += value == 0.0;
  }
  lanes.min = min;
  lanes.max = max;
  add_sums(lanes, x, block_hash(block));
}

template <class Type>
void add_range(Lanes& lanes, const std::byte* data, std::uint64_t first, std::uint64_t count) {
  while (count > 0) {
    const unsigned begin = first % kLanes;
    const auto taken = std::min<std::uint64_t>(kLanes - begin, count);
    add_block<Type>(lanes, data, first / kLanes, begin, begin + static_cast<unsigned>(taken));
    data += taken * sizeof(typename Type::Bits);
    first += taken;
    count -= taken;
  }
}

template <class Type>
bool add_blocks(Lanes* lanes, const unsigned char* data, std::uint64_t first_block,
                std::uint64_t blocks) {
  add_range<Type>(*lanes, reinterpret_cast<const std::byte*>(data), first_block * kLanes,
                  blocks * kLanes);
  return true;
}

void update_hash(void* state, const void* data, std::uint64_t bytes) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state), data, bytes);
}

}  // namespace

void add_elements(DType dtype, Lanes& lanes, const std::byte* data, std::uint64_t first,
                  std::uint64_t count) {
  visit_measured(dtype, [&](auto type) { add_range<decltype(type)>(lanes, data, first, count); });
}

const IsaFunctions kPortable = {update_hash, add_blocks<F64>, add_blocks<F32>, add_blocks<F16>,
                                add_blocks<Bf16>};

}  // namespace gradcheck
