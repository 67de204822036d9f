// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "model/dtype.h"
#include "model/tensor_stats.h"

namespace gradcheck {

// The fused pass over a tensor's bytes: digest, statistics and sketch read each cache line once
// (evidence.md, "The kernel"). Every instruction set gives the same bits: lane = global element
// index modulo 32, additions within a lane in order, one fixed tree at the end, no contraction,
// whatever rounding or flushing of subnormals the caller has set.
//
// Sketch: blocks of 32 by global index, h = splitmix64(0x67726164636865 + block). The element at
// lane k is added to bucket k XOR ((h >> 32) & 31), negated where bit k of h is set.
//
// Range: only f64 can leave it. Σ|x| and √Σx² stop at the largest double (the latter when some
// |x| is beyond about 1e154); a sketch that overflows is left out (has_sketch = false). f64 values
// below about 1e-154 lose bits of their squares, and below 1e-162 all of them.

enum class Isa : std::uint8_t { portable, avx2, avx512 };

std::string_view name_of(Isa isa);
std::vector<Isa> available_isas();  // on this processor, slowest first
Isa best_isa();

// `full`: everything. `digest_only`: digest and count. Types that are not measured (integers, bool,
// complex, fp8) are always treated as digest_only.
enum class KernelMode : std::uint8_t { full, digest_only };

// Streams a tensor in logical order. Chunks hold whole elements, need no alignment and may be
// empty; results do not depend on how the tensor is cut. `first_index` is the global index of the
// first element (not 0 for a shard): it places elements in the sketch, so shards' sketches add up
// to the full tensor's. Owned and used by one thread at a time.
class Kernel {
 public:
  // Throws std::invalid_argument where the processor lacks `isa`.
  Kernel(DType dtype, KernelMode mode, std::uint64_t first_index = 0, Isa isa = best_isa());
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // Throws std::invalid_argument where a chunk cuts an element. The size of `DType::other` is not
  // known: its bytes are counted as elements.
  void update(std::span<const std::byte> elements);
  TensorStats finish();  // once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// One contiguous tensor. Requires: elements.size() is a multiple of size_of(dtype).
TensorStats measure(DType dtype, std::span<const std::byte> elements,
                    KernelMode mode = KernelMode::full);

}  // namespace gradcheck
