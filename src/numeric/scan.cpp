// SPDX-License-Identifier: Apache-2.0
#include "numeric/scan.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace gradcheck {
namespace {

// Elements are looked at eight bytes at a time, several of them side by side. A magnitude (all bits
// but the sign) plus `step`, the lowest bit of the exponent, reaches the sign's place exactly where
// the exponent is all ones, that is for NaN and infinity; it never carries into the neighbour.
struct Masks {
  std::uint64_t magnitude = ~std::uint64_t{0};
  std::uint64_t step = 0;  // 0: no bits mean NaN or infinity
};

Masks masks_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return {0x7fffffffffffffff, 0x0010000000000000};
    case DType::f32:
      return {0x7fffffff7fffffff, 0x0080000000800000};
    case DType::f16:
      return {0x7fff7fff7fff7fff, 0x0400040004000400};
    case DType::bf16:
      return {0x7fff7fff7fff7fff, 0x0080008000800080};
    default:
      return {};
  }
}

// Four sums, so that none waits for the one before it.
struct Gathered {
  std::uint64_t bits[4] = {};
  std::uint64_t carries[4] = {};

  void add(const std::uint64_t (&words)[4], const Masks& masks) {
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t magnitude = words[i] & masks.magnitude;
      bits[i] |= magnitude;
      carries[i] |= magnitude + masks.step;
    }
  }
};

}  // namespace

void scan_elements(DType dtype, std::span<const std::byte> elements, Scan& scan) {
  const Masks masks = masks_of(dtype);
  Gathered gathered;
  std::uint64_t words[4];
  std::size_t at = 0;
  for (; at + sizeof words <= elements.size(); at += sizeof words) {
    std::memcpy(words, elements.data() + at, sizeof words);
    gathered.add(words, masks);
  }
  if (at < elements.size()) {  // zeros fill up: they show nothing
    std::fill(std::begin(words), std::end(words), 0);
    std::memcpy(words, elements.data() + at, elements.size() - at);
    gathered.add(words, masks);
  }
  std::uint64_t bits = 0, carries = 0;
  for (int i = 0; i < 4; ++i) {
    bits |= gathered.bits[i];
    carries |= gathered.carries[i];
  }
  scan.nonzero |= bits != 0;
  scan.nonfinite |= masks.step != 0 && (carries & ~masks.magnitude) != 0;
}

}  // namespace gradcheck
