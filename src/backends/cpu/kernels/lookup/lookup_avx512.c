/* Places of indices, and tables in registers, avx512 tier. */
#include <immintrin.h>

#include "backends/cpu/kernels/lookup/lookup.h"
#include "base/fault.h"

enum { LANES = 16, MOST = 128 };

static inline __mmask16 lanes_below(size_t n) { return n < LANES ? (__mmask16)((1u << n) - 1) : 0xffff; }

/* The places of 16 indices, of which `live` are read. */
static inline __attribute__((always_inline)) __m512i places16_i32(const int32_t *index, __mmask16 live,
                                                                  uint32_t dim, __mmask16 *outside) {
  const __m512i d = _mm512_set1_epi32((int)dim), v = _mm512_maskz_loadu_epi32(live, index);
  const __m512i k = _mm512_mask_add_epi32(v, _mm512_movepi32_mask(v), v, d);
  const __mmask16 inside = _mm512_cmplt_epu32_mask(k, d);
  *outside |= (__mmask16)(live & ~inside);
  return _mm512_maskz_mov_epi32(inside, k);
}

static inline __attribute__((always_inline)) __m256i places8_i64(const int64_t *index, __mmask8 live,
                                                                 __m512i d, __mmask8 *inside) {
  const __m512i v = _mm512_maskz_loadu_epi64(live, index);
  const __m512i k = _mm512_mask_add_epi64(v, _mm512_movepi64_mask(v), v, d);
  *inside = _mm512_cmplt_epu64_mask(k, d);
  return _mm512_maskz_cvtepi64_epi32(*inside, k);
}

static inline __attribute__((always_inline)) __m512i places16_i64(const int64_t *index, __mmask16 live,
                                                                  uint32_t dim, __mmask16 *outside) {
  const __m512i d = _mm512_set1_epi64(dim);
  __mmask8 low, high;
  const __m256i a = places8_i64(index, (__mmask8)live, d, &low),
                b = places8_i64(index + 8, (__mmask8)(live >> 8), d, &high);
  *outside |= (__mmask16)(live & ~(low | high << 8));
  return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
}

/* Lane by lane t[k], from a table of so many registers. */
static inline __attribute__((always_inline)) __m512i take2(const __m512i *t, const int registers, __m512i k) {
  return registers == 1 ? _mm512_permutexvar_epi32(k, t[0]) : _mm512_permutex2var_epi32(t[0], k, t[1]);
}
static inline __attribute__((always_inline)) __m512i take4(const __m512i *t, const int registers, __m512i k) {
  const __m512i low = take2(t, registers, k);
  return registers <= 2 ? low
                        : _mm512_mask_mov_epi32(low, _mm512_test_epi32_mask(k, _mm512_set1_epi32(2 * LANES)),
                                                take2(t + 2, registers, k));
}
static inline __attribute__((always_inline)) __m512i take(const __m512i *t, const int registers, __m512i k) {
  const __m512i low = take4(t, registers, k);
  return registers <= 4 ? low
                        : _mm512_mask_mov_epi32(low, _mm512_test_epi32_mask(k, _mm512_set1_epi32(4 * LANES)),
                                                take4(t + 4, registers, k));
}

/* Masked stores take several times as long as whole ones. */
#define KERNELS(INDEX)                                                                                       \
  static bool places_##INDEX(uint32_t *place, const INDEX##_index *index, size_t n, uint32_t dim) {          \
    __mmask16 outside = 0;                                                                                   \
    size_t i = 0;                                                                                            \
    for (; i + LANES <= n; i += LANES)                                                                       \
      _mm512_storeu_si512(place + i, places16_##INDEX(index + i, 0xffff, dim, &outside));                    \
    if (i == n || HN_FAULT("lookup_tail")) return outside;                                                   \
    const __mmask16 live = lanes_below(n - i);                                                               \
    _mm512_mask_storeu_epi32(place + i, live, places16_##INDEX(index + i, live, dim, &outside));             \
    return outside;                                                                                          \
  }                                                                                                          \
  static inline __attribute__((always_inline)) bool words_of_##INDEX(                                        \
      const int registers, uint32_t *y, const uint32_t *x, const INDEX##_index *index, size_t n,             \
      uint32_t dim) {                                                                                        \
    __m512i t[MOST / LANES];                                                                                 \
    __mmask16 outside = 0;                                                                                   \
    size_t i = 0;                                                                                            \
    for (int r = 0; r < registers; r++)                                                                      \
      t[r] = _mm512_maskz_loadu_epi32(                                                                       \
          dim > (uint32_t)(r * LANES) ? lanes_below(dim - (uint32_t)(r * LANES)) : 0, x + r * LANES);        \
    for (; i + LANES <= n; i += LANES)                                                                       \
      _mm512_storeu_si512(y + i, take(t, registers, places16_##INDEX(index + i, 0xffff, dim, &outside)));    \
    if (i == n || HN_FAULT("lookup_words_tail")) return outside;                                             \
    const __mmask16 live = lanes_below(n - i);                                                               \
    _mm512_mask_storeu_epi32(y + i, live,                                                                    \
                             take(t, registers, places16_##INDEX(index + i, live, dim, &outside)));          \
    return outside;                                                                                          \
  }                                                                                                          \
  static bool words_##INDEX(uint32_t *y, const uint32_t *x, const INDEX##_index *index, size_t n,            \
                            uint32_t dim) {                                                                  \
    if (dim <= LANES) return words_of_##INDEX(1, y, x, index, n, dim);                                       \
    if (dim <= 2 * LANES) return words_of_##INDEX(2, y, x, index, n, dim);                                   \
    if (dim <= 4 * LANES) return words_of_##INDEX(4, y, x, index, n, dim);                                   \
    return words_of_##INDEX(8, y, x, index, n, dim);                                                         \
  }
typedef int64_t i64_index;
typedef int32_t i32_index;
KERNELS(i64)
KERNELS(i32)

static const struct hn_lookup_ops table = {places_i64, places_i32, MOST, words_i64, words_i32};
const struct hn_kernel hn_kernel_lookup_avx512 = {
    .name = "lookup_avx512", .family = "lookup", .role = "words", .isa = HN_ISA_AVX512, .ops = &table};
