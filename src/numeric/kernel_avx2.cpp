// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include <cstdint>

#include "numeric/kernel_isa.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gradcheck {
namespace {

// 3 × 32 sums in double fill 24 registers and there are 16, so a chunk, which lies in the
// first-level cache, is read three times: the norms of lanes 0–15, those of 16–31, the sketch.
constexpr std::uint64_t kHalf = 4;     // vectors of four doubles in half a block
constexpr std::uint64_t kVectors = 8;  // … in a block

// Eight single-precision values, lanes 8·group … 8·group + 7 of the block that starts at `block`.
// f16 and bf16 are widened to them, which is exact.
struct F32 {
  static constexpr std::uint64_t kBlockBytes = 128;
  static __m256 load(const unsigned char* block, std::uint64_t group) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(block + 32 * group));
  }
};

struct F16 {
  static constexpr std::uint64_t kBlockBytes = 64;
  static __m256 load(const unsigned char* block, std::uint64_t group) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 16 * group)));
  }
};

struct Bf16 {
  static constexpr std::uint64_t kBlockBytes = 64;
  static __m256 load(const unsigned char* block, std::uint64_t group) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 16 * group));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
};

struct Norms {
  __m256d l1[kHalf];
  __m256d squares[kHalf];
};

inline void load_norms(Norms& norms, const Lanes& lanes, std::uint64_t half) {
  for (std::uint64_t v = 0; v < kHalf; ++v) {
    norms.l1[v] = _mm256_load_pd(lanes.l1 + 16 * half + 4 * v);
    norms.squares[v] = _mm256_load_pd(lanes.squares + 16 * half + 4 * v);
  }
}

inline void store_norms(Lanes& lanes, const Norms& norms, std::uint64_t half) {
  for (std::uint64_t v = 0; v < kHalf; ++v) {
    _mm256_store_pd(lanes.l1 + 16 * half + 4 * v, norms.l1[v]);
    _mm256_store_pd(lanes.squares + 16 * half + 4 * v, norms.squares[v]);
  }
}

inline void add_norms(Norms& norms, std::uint64_t v, __m256d x) {
  norms.l1[v] = _mm256_add_pd(norms.l1[v], _mm256_andnot_pd(_mm256_set1_pd(-0.0), x));
  norms.squares[v] = _mm256_add_pd(norms.squares[v], _mm256_mul_pd(x, x));
}

inline __m256d low_half(__m256 x) { return _mm256_cvtps_pd(_mm256_castps256_ps128(x)); }
inline __m256d high_half(__m256 x) { return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)); }

// NaN and infinity stay in Σ|x| once they are there, so one look after a chunk is enough.
inline bool all_finite(const Lanes& lanes) {
  __m256d total = _mm256_load_pd(lanes.l1);
  for (std::uint64_t v = 1; v < kVectors; ++v) {
    total = _mm256_add_pd(total, _mm256_load_pd(lanes.l1 + 4 * v));
  }
  const __m256d infinity = _mm256_set1_pd(__builtin_inf());
  return _mm256_movemask_pd(_mm256_cmp_pd(total, infinity, _CMP_LT_OQ)) == 0xf;
}

inline void store_extrema(Lanes& lanes, __m256d min, __m256d max) {
  alignas(32) double lows[4];
  alignas(32) double highs[4];
  _mm256_store_pd(lows, min);
  _mm256_store_pd(highs, max);
  for (int i = 0; i < 4; ++i) {
    lanes.min = lows[i] < lanes.min ? lows[i] : lanes.min;
    lanes.max = highs[i] > lanes.max ? highs[i] : lanes.max;
  }
}

// `counts` holds, in each of four 64-bit lanes, minus the number of zeros seen there.
inline void store_zeros(Lanes& lanes, __m256i counts) {
  alignas(32) std::int64_t parts[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(parts), counts);
  for (const std::int64_t part : parts) lanes.zeros -= static_cast<std::uint64_t>(part);
}

// 32-bit lanes to 64-bit lanes; a chunk has too few elements to overflow the former.
inline __m256i widen_counts(__m256i counts) {
  return _mm256_add_epi64(_mm256_cvtepi32_epi64(_mm256_castsi256_si128(counts)),
                          _mm256_cvtepi32_epi64(_mm256_extracti128_si256(counts, 1)));
}

// The next chunk travels from memory while this one is reduced. As an integer, since a pointer
// beyond the tensor's end may not even be formed; prefetching there is harmless.
inline void prefetch(const unsigned char* at, std::uint64_t bytes) {
  const auto next = reinterpret_cast<std::uintptr_t>(at) + kChunkBytes;
  for (std::uint64_t line = 0; line < bytes; line += 64) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    _mm_prefetch(reinterpret_cast<const char*>(next + line), _MM_HINT_T0);
  }
}

template <class Type>
void norms_of_half(Lanes& lanes, const unsigned char* data, std::uint64_t blocks,
                   std::uint64_t half) {
  Norms norms;
  load_norms(norms, lanes, half);
  __m256 min = _mm256_set1_ps(__builtin_inff());
  __m256 max = _mm256_set1_ps(-__builtin_inff());
  __m256i zeros = _mm256_setzero_si256();
  for (std::uint64_t block = 0; block < blocks; ++block, data += Type::kBlockBytes) {
    if (half == 0) prefetch(data, Type::kBlockBytes);
    for (std::uint64_t group = 0; group < 2; ++group) {
      const __m256 x = Type::load(data, 2 * half + group);
      min = _mm256_min_ps(min, x);
      max = _mm256_max_ps(max, x);
      const __m256 zero = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_EQ_OQ);
      zeros = _mm256_add_epi32(zeros, _mm256_castps_si256(zero));
      add_norms(norms, 2 * group, low_half(x));
      add_norms(norms, 2 * group + 1, high_half(x));
    }
  }
  store_norms(lanes, norms, half);
  store_extrema(lanes, _mm256_min_pd(low_half(min), high_half(min)),
                _mm256_max_pd(low_half(max), high_half(max)));
  store_zeros(lanes, widen_counts(zeros));
}

// Shifts bit i of `signs` to the sign of lane i.
inline __m256 negate(__m256 x, std::uint32_t signs) {
  const __m256i shifts = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
  const __m256i bits = _mm256_sllv_epi32(_mm256_set1_epi32(static_cast<int>(signs)), shifts);
  return _mm256_xor_ps(x, _mm256_and_ps(_mm256_castsi256_ps(bits), _mm256_set1_ps(-0.0F)));
}

// Bucket k holds lane k XOR r: the high two bits of r choose a group of eight, the low three
// permute within it (the permute reads three bits of each index).
template <class Type>
void sketch_of(Lanes& lanes, const unsigned char* data, std::uint64_t first_block,
               std::uint64_t blocks) {
  __m256d sums[kVectors];
  for (std::uint64_t v = 0; v < kVectors; ++v) sums[v] = _mm256_load_pd(lanes.sketch + 4 * v);
  const __m256i order = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  for (std::uint64_t block = 0; block < blocks; ++block, data += Type::kBlockBytes) {
    const std::uint64_t hash = block_hash(first_block + block);
    const auto signs = static_cast<std::uint32_t>(hash);
    const std::uint64_t r = (hash >> 32) & 31;
    const __m256i from = _mm256_xor_si256(order, _mm256_set1_epi32(static_cast<int>(r)));
    for (std::uint64_t group = 0; group < 4; ++group) {
      const std::uint64_t source = group ^ (r >> 3);
      const __m256 x = negate(Type::load(data, source), signs >> (8 * source));
      const __m256 placed = _mm256_permutevar8x32_ps(x, from);
      sums[2 * group] = _mm256_add_pd(sums[2 * group], low_half(placed));
      sums[2 * group + 1] = _mm256_add_pd(sums[2 * group + 1], high_half(placed));
    }
  }
  for (std::uint64_t v = 0; v < kVectors; ++v) _mm256_store_pd(lanes.sketch + 4 * v, sums[v]);
}

template <class Type>
bool add_blocks(Lanes* lanes, const unsigned char* data, std::uint64_t first_block,
                std::uint64_t blocks) {
  Lanes sums = *lanes;
  norms_of_half<Type>(sums, data, blocks, 0);
  norms_of_half<Type>(sums, data, blocks, 1);
  if (!all_finite(sums)) return false;
  sketch_of<Type>(sums, data, first_block, blocks);
  *lanes = sums;
  return true;
}

// f64: a block is eight vectors of four, read without widening.
inline __m256d load_f64(const unsigned char* block, std::uint64_t vector) {
  return _mm256_loadu_pd(reinterpret_cast<const double*>(block + 32 * vector));
}

void norms_of_half_f64(Lanes& lanes, const unsigned char* data, std::uint64_t blocks,
                       std::uint64_t half) {
  Norms norms;
  load_norms(norms, lanes, half);
  __m256d min = _mm256_set1_pd(__builtin_inf());
  __m256d max = _mm256_set1_pd(-__builtin_inf());
  __m256i zeros = _mm256_setzero_si256();
  for (std::uint64_t block = 0; block < blocks; ++block, data += 256) {
    if (half == 0) prefetch(data, 256);
    for (std::uint64_t v = 0; v < kHalf; ++v) {
      const __m256d x = load_f64(data, kHalf * half + v);
      min = _mm256_min_pd(min, x);
      max = _mm256_max_pd(max, x);
      const __m256d zero = _mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_EQ_OQ);
      zeros = _mm256_add_epi64(zeros, _mm256_castpd_si256(zero));
      add_norms(norms, v, x);
    }
  }
  store_norms(lanes, norms, half);
  store_extrema(lanes, min, max);
  store_zeros(lanes, zeros);
}

inline __m256d negate(__m256d x, std::uint32_t signs) {
  const __m256i shifts = _mm256_setr_epi64x(63, 62, 61, 60);
  const __m256i bits = _mm256_sllv_epi64(_mm256_set1_epi64x(signs), shifts);
  return _mm256_xor_pd(x, _mm256_and_pd(_mm256_castsi256_pd(bits), _mm256_set1_pd(-0.0)));
}

void sketch_of_f64(Lanes& lanes, const unsigned char* data, std::uint64_t first_block,
                   std::uint64_t blocks) {
  __m256d sums[kVectors];
  for (std::uint64_t v = 0; v < kVectors; ++v) sums[v] = _mm256_load_pd(lanes.sketch + 4 * v);
  const __m256i order = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  for (std::uint64_t block = 0; block < blocks; ++block, data += 256) {
    const std::uint64_t hash = block_hash(first_block + block);
    const auto signs = static_cast<std::uint32_t>(hash);
    const std::uint64_t r = (hash >> 32) & 31;
    // A double moves as two 32-bit halves, so r's low two bits count for twice as much.
    const __m256i from = _mm256_xor_si256(order, _mm256_set1_epi32(static_cast<int>(2 * (r & 3))));
    for (std::uint64_t v = 0; v < kVectors; ++v) {
      const std::uint64_t source = v ^ (r >> 2);
      const __m256d x = negate(load_f64(data, source), signs >> (4 * source));
      const __m256 placed = _mm256_permutevar8x32_ps(_mm256_castpd_ps(x), from);
      sums[v] = _mm256_add_pd(sums[v], _mm256_castps_pd(placed));
    }
  }
  for (std::uint64_t v = 0; v < kVectors; ++v) _mm256_store_pd(lanes.sketch + 4 * v, sums[v]);
}

bool add_blocks_f64(Lanes* lanes, const unsigned char* data, std::uint64_t first_block,
                    std::uint64_t blocks) {
  Lanes sums = *lanes;
  norms_of_half_f64(sums, data, blocks, 0);
  norms_of_half_f64(sums, data, blocks, 1);
  if (!all_finite(sums)) return false;
  sketch_of_f64(sums, data, first_block, blocks);
  *lanes = sums;
  return true;
}

void update_hash(void* state, const void* data, std::uint64_t bytes) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state), data, bytes);
}

}  // namespace

const IsaFunctions kAvx2 = {update_hash, add_blocks_f64, add_blocks<F32>, add_blocks<F16>,
                            add_blocks<Bf16>};

}  // namespace gradcheck
