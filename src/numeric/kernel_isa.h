// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace gradcheck {

// What kernel.cpp shares with the files of one instruction set. Those are compiled with wider
// instructions than the rest of the program, so nothing here may become an inline symbol that the
// linker could pick for everybody: no std templates, no member functions, `static` on the rest.

inline constexpr int kLanes = 32;  // elements of a block, and buckets of a sketch

// Running sums. Lane = global element index modulo 32; bucket = lane XOR the block's r. A block
// gives every lane and every bucket one element, so the order of additions within any of them is
// the order of blocks, whoever does it and however the tensor is cut.
//
// Signed zeros need no care: sums start at +0 and x + (−x) is +0, so no sum ever becomes −0, and
// adding a zero of either sign equals skipping the element.
struct Lanes {
  alignas(64) double l1[kLanes];
  alignas(64) double squares[kLanes];
  alignas(64) double sketch[kLanes];
  double min;  // +inf and −inf until the first finite element
  double max;
  std::uint64_t zeros;
  std::uint64_t nan;
  std::uint64_t inf;
};

// Signs and bucket permutation of one block: the low 32 bits are signs (1 = minus, lane k = bit k),
// the next five are r. This is splitmix64 (Steele, Lea and Flood, 2014) of the argument: one step
// of the generator whose state was the argument.
static inline std::uint64_t block_hash(std::uint64_t block) {
  std::uint64_t z = 0x67726164636865U + block;
  z += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

// Adds whole blocks, all of whose elements are finite, to `lanes`. Returns false, with `lanes` as
// they were, where an element is not finite or Σ|x| overflowed: the caller then takes the portable
// path, which handles both. `data` needs no alignment.
using AddBlocks = bool (*)(Lanes* lanes, const unsigned char* data, std::uint64_t first_block,
                           std::uint64_t blocks);

// XXH3-128 update. The state has one layout for all instruction sets.
using UpdateHash = void (*)(void* xxh3_state, const void* data, std::uint64_t bytes);

struct IsaFunctions {
  UpdateHash hash;
  AddBlocks f64;
  AddBlocks f32;
  AddBlocks f16;
  AddBlocks bf16;
};

extern const IsaFunctions kPortable;
extern const IsaFunctions kAvx2;
extern const IsaFunctions kAvx512;

// Bytes hashed and then reduced while they are in the first-level cache.
inline constexpr std::uint64_t kChunkBytes = 8192;

}  // namespace gradcheck
