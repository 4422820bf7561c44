/* VPDPBUSD on vectors of 512 bits. */
#include <immintrin.h>

#define LANES 16
typedef __m512i ints;
static inline ints set_all(int32_t x) { return _mm512_set1_epi32(x); }
static inline ints plus(ints a, ints b) { return _mm512_add_epi32(a, b); }
static inline ints times(ints a, ints b) { return _mm512_mullo_epi32(a, b); }
static inline ints widened(const signed char *p) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)p));
}
static inline __m512 reals(ints a) { return _mm512_cvtepi32_ps(a); }
static inline ints group(const unsigned char *p) { return _mm512_loadu_si512(p); }
static inline ints high(ints x) { return _mm512_srli_epi16(x, 4); }
/* (x & 15) ^ 8: a nibble in two's complement is unsigned again */
static inline ints turned(ints x, int bits) {
  if (bits == 8) return _mm512_xor_si512(x, _mm512_set1_epi8((char)0x80));
  return _mm512_ternarylogic_epi32(x, _mm512_set1_epi8(0x0f), _mm512_set1_epi8(0x08), 0x6a);
}
#if defined(HN_INSTRUMENTED)
static inline ints dot(ints sum, ints u, ints s) { return _mm512_dpbusd_epi32(sum, u, s); }
#endif

#include "backends/cpu/kernels/coded/coded_int8_body.h"

static void narrow(const hn_coded *w, const float *a, int8_t *to, float *scale, int32_t *sum) {
  for (size_t b = 0; b < w->blocks; b++, a += w->block, to += w->block) {
    __m512 most = _mm512_setzero_ps();
    __mmask16 nan = 0;
    for (size_t k = 0; k < w->block; k += 16) {
      const __mmask16 live = w->block - k < 16 ? (__mmask16)((1u << (w->block - k)) - 1u) : 0xffff;
      const __m512 x = _mm512_maskz_loadu_ps(live, a + k);
      nan |= _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
      most = _mm512_max_ps(most, _mm512_abs_ps(x));
    }
    const float top = nan ? __builtin_nanf("") : _mm512_reduce_max_ps(most),
                by = top > 0 ? 127.0f / top : 0.0f;
    __m512i all = _mm512_setzero_si512();
    scale[b] = top / 127.0f;
    for (size_t k = 0; k < w->block; k += 16) {
      const __mmask16 live = w->block - k < 16 ? (__mmask16)((1u << (w->block - k)) - 1u) : 0xffff;
      const __m512 x = _mm512_mul_ps(_mm512_maskz_loadu_ps(live, a + k), _mm512_set1_ps(by));
      /* What is no number has a scale that is none; it must not leave the range of the sum. */
      const __m512i q = _mm512_max_epi32(_mm512_cvtps_epi32(x), _mm512_set1_epi32(-128));
      all = _mm512_add_epi32(all, q);
      _mm512_mask_cvtsepi32_storeu_epi8(to + k, live, q);
    }
    sum[b] = _mm512_reduce_add_epi32(all);
  }
}

TILE(one_row, 1, 4)
TILE(one_by_one, 1, 1)
TILE(two_rows, 2, 2)
TILE(three_rows, 3, 2)
TILE(four_rows, 4, 2)
TILE(eight_rows, 8, 1)

static const tile_kind kinds[] = {{eight_rows, 8, 1}, {four_rows, 4, 2}, {three_rows, 3, 2},
                                  {two_rows, 2, 2},   {one_row, 1, 4},   {one_by_one, 1, 1}};

static void product(const hn_coded *w, const hn_coded_rows *a, size_t rows, size_t from, size_t end, float *y,
                    ptrdiff_t y_row) {
  product_of(kinds, w, a, rows, from, end, y, y_row);
}

static const hn_coded_int8_ops table = {.rows = 8, .lanes = LANES, .narrow = narrow, .product = product};

const struct hn_kernel hn_kernel_coded_int8_avx512vnni = {.name = "coded_int8_avx512vnni",
                                                          .family = "coded",
                                                          .role = "int8",
                                                          .isa = HN_ISA_AVX512VNNI,
                                                          .ops = &table};
