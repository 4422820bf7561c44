/* Places of indices, avx2 tier. Comparisons are of signed numbers, hence with the sign bit turned. */
#include <immintrin.h>

#include "backends/cpu/kernels/lookup/lookup.h"
#include "base/fault.h"

/* The last indices, which fill no vector. */
#define END(INDEX)                                                                                           \
  for (const size_t end = n && HN_FAULT("lookup_tail") ? n - 1 : n; i < end; i++) {                          \
    const int64_t v = index[i], k = v < 0 ? v + dim : v;                                                     \
    const bool inside = (uint64_t)k < dim;                                                                   \
    outside |= !inside;                                                                                      \
    place[i] = inside ? (uint32_t)k : 0;                                                                     \
  }

static inline __m256i four(const int64_t *index, __m256i dim, __m256i below, __m256i *all) {
  const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)index);
  const __m256i negative = _mm256_cmpgt_epi64(_mm256_setzero_si256(), v);
  const __m256i k = _mm256_add_epi64(v, _mm256_and_si256(negative, dim));
  const __m256i inside = _mm256_cmpgt_epi64(below, _mm256_xor_si256(k, _mm256_set1_epi64x(INT64_MIN)));
  *all = _mm256_and_si256(*all, inside);
  return _mm256_and_si256(k, inside);
}

static bool places_i64(uint32_t *place, const int64_t *index, size_t n, uint32_t dim) {
  const __m256i d = _mm256_set1_epi64x(dim), below = _mm256_xor_si256(d, _mm256_set1_epi64x(INT64_MIN));
  const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
  __m256i all = _mm256_set1_epi32(-1);
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i a = _mm256_permutevar8x32_epi32(four(index + i, d, below, &all), even),
                  b = _mm256_permutevar8x32_epi32(four(index + i + 4, d, below, &all), even);
    _mm256_storeu_si256((__m256i *)(void *)(place + i), _mm256_blend_epi32(a, b, 0xf0));
  }
  bool outside = _mm256_movemask_epi8(all) != -1;
  END(int64)
  return outside;
}

static bool places_i32(uint32_t *place, const int32_t *index, size_t n, uint32_t dim) {
  const __m256i d = _mm256_set1_epi32((int)dim), turn = _mm256_set1_epi32(INT32_MIN),
                below = _mm256_xor_si256(d, turn);
  __m256i all = _mm256_set1_epi32(-1);
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(index + i));
    const __m256i k = _mm256_add_epi32(v, _mm256_and_si256(_mm256_srai_epi32(v, 31), d));
    const __m256i inside = _mm256_cmpgt_epi32(below, _mm256_xor_si256(k, turn));
    all = _mm256_and_si256(all, inside);
    _mm256_storeu_si256((__m256i *)(void *)(place + i), _mm256_and_si256(k, inside));
  }
  bool outside = _mm256_movemask_epi8(all) != -1;
  END(int32)
  return outside;
}

static const struct hn_lookup_ops table = {.places_i64 = places_i64, .places_i32 = places_i32};
const struct hn_kernel hn_kernel_lookup_avx2 = {
    .name = "lookup_avx2", .family = "lookup", .role = "words", .isa = HN_ISA_AVX2, .ops = &table};
