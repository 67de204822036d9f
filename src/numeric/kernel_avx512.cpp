// SPDX-License-Identifier: Apache-2.0
// GCC 12's AVX-512 intrinsics pass a variable initialised from itself (GCC PR 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <cstdint>

#include "numeric/kernel_isa.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gradcheck {
namespace {

constexpr std::uint64_t kVectors = 4;  // of eight doubles: one block

inline __m512i load_bits(const unsigned char* at) { return _mm512_loadu_si512(at); }

// One type per narrow dtype. `load` gives eight single-precision values, lanes 8·v … 8·v + 7 of
// the block that starts at `block`: f16 and bf16 are widened to them, which is exact.
struct F32 {
  static constexpr std::uint64_t kBlockBytes = 128;
  static __m256 load(const unsigned char* block, std::uint64_t v) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(block + 32 * v));
  }
  static int zeros(const unsigned char* block) {
    const __m512i magnitude = _mm512_set1_epi32(INT32_MAX);
    const unsigned low = _mm512_testn_epi32_mask(load_bits(block), magnitude);
    const unsigned high = _mm512_testn_epi32_mask(load_bits(block + 64), magnitude);
    return __builtin_popcount(low | high << 16);
  }
};

inline __m128i load_eight(const unsigned char* block, std::uint64_t v) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 16 * v));
}

inline int zeros_of_16_bits(const unsigned char* block) {
  return __builtin_popcount(
      _mm512_testn_epi16_mask(load_bits(block), _mm512_set1_epi16(INT16_MAX)));
}

struct F16 {
  static constexpr std::uint64_t kBlockBytes = 64;
  static __m256 load(const unsigned char* block, std::uint64_t v) {
    return _mm256_cvtph_ps(load_eight(block, v));
  }
  static int zeros(const unsigned char* block) { return zeros_of_16_bits(block); }
};

struct Bf16 {
  static constexpr std::uint64_t kBlockBytes = 64;
  static __m256 load(const unsigned char* block, std::uint64_t v) {
    const __m256i bits = _mm256_cvtepu16_epi32(load_eight(block, v));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
  }
  static int zeros(const unsigned char* block) { return zeros_of_16_bits(block); }
};

struct Sums {
  __m512d l1[kVectors];
  __m512d squares[kVectors];
  __m512d sketch[kVectors];
  std::uint64_t zeros;
};

inline void load_sums(Sums& sums, const Lanes& lanes) {
  for (std::uint64_t v = 0; v < kVectors; ++v) {
    sums.l1[v] = _mm512_load_pd(lanes.l1 + 8 * v);
    sums.squares[v] = _mm512_load_pd(lanes.squares + 8 * v);
    sums.sketch[v] = _mm512_load_pd(lanes.sketch + 8 * v);
  }
  sums.zeros = 0;
}

inline void store_sums(Lanes& lanes, const Sums& sums) {
  for (std::uint64_t v = 0; v < kVectors; ++v) {
    _mm512_store_pd(lanes.l1 + 8 * v, sums.l1[v]);
    _mm512_store_pd(lanes.squares + 8 * v, sums.squares[v]);
    _mm512_store_pd(lanes.sketch + 8 * v, sums.sketch[v]);
  }
  lanes.zeros += sums.zeros;
}

// NaN and infinity stay in Σ|x| once they are there, so one look after a chunk is enough.
inline bool all_finite(const Sums& sums) {
  const __m512d total =
      _mm512_add_pd(_mm512_add_pd(sums.l1[0], sums.l1[1]), _mm512_add_pd(sums.l1[2], sums.l1[3]));
  return _mm512_cmp_pd_mask(total, _mm512_set1_pd(__builtin_inf()), _CMP_LT_OQ) == 0xff;
}

inline void store_extrema(Lanes& lanes, __m512d mins, __m512d maxs) {
  const double min = _mm512_reduce_min_pd(mins);
  const double max = _mm512_reduce_max_pd(maxs);
  lanes.min = min < lanes.min ? min : lanes.min;
  lanes.max = max > lanes.max ? max : lanes.max;
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

// The square of a value of at most 24 significant bits is exact in double, so fusing it with the
// addition rounds once, as the definition does.
inline void add_norms(Sums& sums, std::uint64_t v, __m512d x) {
  sums.l1[v] = _mm512_add_pd(sums.l1[v], _mm512_abs_pd(x));
  sums.squares[v] = _mm512_fmadd_pd(x, x, sums.squares[v]);
}

inline __m512d negate(__m512d x, std::uint32_t signs) {
  const __m512i bits = _mm512_castpd_si512(x);
  return _mm512_castsi512_pd(_mm512_mask_xor_epi64(bits, static_cast<__mmask8>(signs), bits,
                                                   _mm512_set1_epi64(INT64_MIN)));
}

// A block of doubles fills four vectors. The high bits of r choose which vector to read again (it
// is in the first-level cache), the low three permute within it.
inline void add_sketch(Sums& sums, const unsigned char* block, std::uint64_t hash) {
  const auto signs = static_cast<std::uint32_t>(hash);
  const std::uint64_t r = (hash >> 32) & 31;
  const __m512i lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
  const __m512i from = _mm512_xor_epi64(lanes, _mm512_set1_epi64(static_cast<long long>(r)));
  for (std::uint64_t v = 0; v < kVectors; ++v) {
    const std::uint64_t source = v ^ (r >> 3);
    const __m512d x = negate(_mm512_loadu_pd(block + 64 * source), signs >> (8 * source));
    sums.sketch[v] = _mm512_add_pd(sums.sketch[v], _mm512_permutexvar_pd(from, x));
  }
}

template <class Type>
bool add_blocks(Lanes* lanes, const unsigned char* data, std::uint64_t first_block,
                std::uint64_t blocks) {
  Sums sums;
  load_sums(sums, *lanes);
  __m256 min = _mm256_set1_ps(__builtin_inff());
  __m256 max = _mm256_set1_ps(-__builtin_inff());
  for (std::uint64_t block = 0; block < blocks; ++block, data += Type::kBlockBytes) {
    prefetch(data, Type::kBlockBytes);
    alignas(64) double wide[kLanes];
    for (std::uint64_t v = 0; v < kVectors; ++v) {
      const __m256 narrow = Type::load(data, v);
      min = _mm256_min_ps(min, narrow);
      max = _mm256_max_ps(max, narrow);
      const __m512d x = _mm512_cvtps_pd(narrow);
      _mm512_store_pd(wide + 8 * v, x);
      add_norms(sums, v, x);
    }
    sums.zeros += static_cast<std::uint64_t>(Type::zeros(data));
    add_sketch(sums, reinterpret_cast<const unsigned char*>(wide), block_hash(first_block + block));
  }
  if (!all_finite(sums)) return false;
  store_sums(*lanes, sums);
  store_extrema(*lanes, _mm512_cvtps_pd(min), _mm512_cvtps_pd(max));
  return true;
}

bool add_blocks_f64(Lanes* lanes, const unsigned char* data, std::uint64_t first_block,
                    std::uint64_t blocks) {
  Sums sums;
  load_sums(sums, *lanes);
  __m512d min = _mm512_set1_pd(__builtin_inf());
  __m512d max = _mm512_set1_pd(-__builtin_inf());
  for (std::uint64_t block = 0; block < blocks; ++block, data += 256) {
    prefetch(data, 256);
    for (std::uint64_t v = 0; v < kVectors; ++v) {
      const __m512d x = _mm512_loadu_pd(data + 64 * v);
      min = _mm512_min_pd(min, x);
      max = _mm512_max_pd(max, x);
      const unsigned zeros = _mm512_cmp_pd_mask(x, _mm512_setzero_pd(), _CMP_EQ_OQ);
      sums.zeros += static_cast<std::uint64_t>(__builtin_popcount(zeros));
      sums.l1[v] = _mm512_add_pd(sums.l1[v], _mm512_abs_pd(x));
      sums.squares[v] = _mm512_add_pd(sums.squares[v], _mm512_mul_pd(x, x));
    }
    add_sketch(sums, data, block_hash(first_block + block));
  }
  if (!all_finite(sums)) return false;
  store_sums(*lanes, sums);
  store_extrema(*lanes, min, max);
  return true;
}

void update_hash(void* state, const void* data, std::uint64_t bytes) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state), data, bytes);
}

}  // namespace

const IsaFunctions kAvx512 = {update_hash, add_blocks_f64, add_blocks<F32>, add_blocks<F16>,
                              add_blocks<Bf16>};

}  // namespace gradcheck
