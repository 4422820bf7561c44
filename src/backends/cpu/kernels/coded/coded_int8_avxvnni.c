/* VPDPBUSD on vectors of 256 bits, without AVX-512. */
#include <immintrin.h>

#define LANES 8
typedef __m256i ints;
static inline ints set_all(int32_t x) { return _mm256_set1_epi32(x); }
static inline ints plus(ints a, ints b) { return _mm256_add_epi32(a, b); }
static inline ints times(ints a, ints b) { return _mm256_mullo_epi32(a, b); }
static inline ints widened(const signed char *p) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)p));
}
static inline __m256 reals(ints a) { return _mm256_cvtepi32_ps(a); }
static inline ints group(const unsigned char *p) { return _mm256_loadu_si256((const void *)p); }
static inline ints high(ints x) { return _mm256_srli_epi16(x, 4); }
/* (x & 15) ^ 8: a nibble in two's complement is unsigned again */
static inline ints turned(ints x, int bits) {
  if (bits == 8) return _mm256_xor_si256(x, _mm256_set1_epi8((char)0x80));
  return _mm256_xor_si256(_mm256_and_si256(x, _mm256_set1_epi8(0x0f)), _mm256_set1_epi8(0x08));
}
static inline ints dot(ints sum, ints u, ints s) { return _mm256_dpbusd_avx_epi32(sum, u, s); }

#include "backends/cpu/kernels/coded/coded_int8_body.h"

/* Blocks are multiples of 8 values. */
static void narrow(const hn_coded *w, const float *a, int8_t *to, float *scale, int32_t *sum) {
  for (size_t b = 0; b < w->blocks; b++, a += w->block, to += w->block) {
    __m256 most = _mm256_setzero_ps(), nan = most;
    for (size_t k = 0; k < w->block; k += LANES) {
      const __m256 x = _mm256_loadu_ps(a + k);
      nan = _mm256_or_ps(nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
      most = _mm256_max_ps(most, v_abs(x));
    }
    const float top = v_any(nan) ? __builtin_nanf("") : v_hmax(most), by = top > 0 ? 127.0f / top : 0.0f;
    __m256i all = _mm256_setzero_si256();
    scale[b] = top / 127.0f;
    for (size_t k = 0; k < w->block; k += LANES) {
      const __m256 x = _mm256_mul_ps(_mm256_loadu_ps(a + k), _mm256_set1_ps(by));
      /* What is no number has a scale that is none; it must not leave the range of the sum. */
      const __m256i q = _mm256_max_epi32(_mm256_cvtps_epi32(x), _mm256_set1_epi32(-128));
      all = _mm256_add_epi32(all, q);
      const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
      _mm_storel_epi64((__m128i *)(void *)(to + k), _mm_packs_epi16(words, words));
    }
    int32_t lane[LANES];
    _mm256_storeu_si256((__m256i *)(void *)lane, all);
    sum[b] = 0;
    HN_UNROLL for (int i = 0; i < LANES; i++) sum[b] += lane[i];
  }
}

TILE(one_row, 1, 4)
TILE(one_by_one, 1, 1)
TILE(two_rows, 2, 2)
TILE(three_rows, 3, 1)
TILE(four_rows, 4, 1)

static const tile_kind kinds[] = {
    {four_rows, 4, 1}, {three_rows, 3, 1}, {two_rows, 2, 2}, {one_row, 1, 4}, {one_by_one, 1, 1}};

static void product(const hn_coded *w, const hn_coded_rows *a, size_t rows, size_t from, size_t end, float *y,
                    ptrdiff_t y_row) {
  product_of(kinds, w, a, rows, from, end, y, y_row);
}

static const hn_coded_int8_ops table = {.rows = 4, .lanes = LANES, .narrow = narrow, .product = product};

const struct hn_kernel hn_kernel_coded_int8_avxvnni = {
    .name = "coded_int8_avxvnni", .family = "coded", .role = "int8", .isa = HN_ISA_AVXVNNI, .ops = &table};
