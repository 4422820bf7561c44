/* VPMADDUBSW where no pair of products can saturate it, which packing finds out: of trained weights that is
 * most. Elsewhere even and odd bytes as words, VPMADDWD twice. 6 rows of 16 columns. */
#include <immintrin.h>

#include "backends/cpu/kernels/gemm_int8/gemm_int8.h"
#include "backends/cpu/kernels/template.h"

enum { FEW = 6 };

/* Products of a row's four values with those of 16 columns, in words: whatever they are. */
static inline __attribute__((always_inline)) void
in_words(__m256i acc[FEW][2], const uint8_t *a, ptrdiff_t lda, const int8_t *b, const int mr, const int nv) {
  const __m256i low = _mm256_set1_epi16(0xff);
  __m256i even[2], odd[2];
  HN_UNROLL for (int j = 0; j < nv; j++) {
    const __m256i v = _mm256_load_si256((const __m256i *)(const void *)(b + 32 * j));
    even[j] = _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8);
    odd[j] = _mm256_srai_epi16(v, 8);
  }
  HN_UNROLL for (int i = 0; i < FEW; i++) if (i < mr) {
    int32_t four;
    __builtin_memcpy(&four, a + i * lda, 4);
    const __m256i v = _mm256_set1_epi32(four), x = _mm256_and_si256(v, low), y = _mm256_srli_epi16(v, 8);
    HN_UNROLL for (int j = 0; j < nv; j++) acc[i][j] = _mm256_add_epi32(
        acc[i][j], _mm256_add_epi32(_mm256_madd_epi16(x, even[j]), _mm256_madd_epi16(y, odd[j])));
  }
}

/* The same where pairs of products fit 16 bits: VPMADDUBSW does not saturate. */
static inline __attribute__((always_inline)) void
in_bytes(__m256i acc[FEW][2], const uint8_t *a, ptrdiff_t lda, const int8_t *b, const int mr, const int nv) {
  const __m256i one = _mm256_set1_epi16(1);
  __m256i w[2];
  HN_UNROLL for (int j = 0; j < nv; j++) w[j] =
      _mm256_load_si256((const __m256i *)(const void *)(b + 32 * j));
  HN_UNROLL for (int i = 0; i < FEW; i++) if (i < mr) {
    int32_t four;
    __builtin_memcpy(&four, a + i * lda, 4);
    const __m256i x = _mm256_set1_epi32(four);
    HN_UNROLL for (int j = 0; j < nv; j++) acc[i][j] =
        _mm256_add_epi32(acc[i][j], _mm256_madd_epi16(_mm256_maddubs_epi16(x, w[j]), one));
  }
}

static inline __attribute__((always_inline)) void products(const hn_int8_tile *t, __m256i acc[FEW][2],
                                                           const int mr, const int nv) {
  if (t->fours) {
    const struct hn_int8_four *f = t->fours->at, *narrow = f + t->fours->narrow, *end = f + t->fours->n;
    if (HN_FAULT("int8_last_k")) f++;
    for (; f < narrow; f++) in_bytes(acc, t->a + f->a, t->lda, t->b + f->b, mr, nv);
    for (; f < end; f++) in_words(acc, t->a + f->a, t->lda, t->b + f->b, mr, nv);
  } else {
    const int8_t *b = t->b;
    for (uint32_t s = 0; s < t->segments; s++) {
      const uint8_t *a = t->a + (s ? t->segment_at[s] : 0);
      for (size_t k = HN_FAULT("int8_last_k") ? 4 : 0; k < t->k; k += 4, a += 4, b += 64)
        in_words(acc, a, t->lda, b, mr, nv);
    }
  }
}

#include "backends/cpu/kernels/gemm_int8/int8_operand.inc"
#include "backends/cpu/kernels/gemm_int8/int8_tile256.inc"

/* Both factors of a pair at their largest: a sum of weights above 128 saturates 255 of A, one below -128 too.
 */
static bool saturates(__m256i weights) {
  const __m256i most = _mm256_set1_epi8((char)255), zero = _mm256_setzero_si256();
  const __m256i above = _mm256_maddubs_epi16(most, _mm256_max_epi8(weights, zero)),
                below = _mm256_maddubs_epi16(most, _mm256_min_epi8(weights, zero));
  return _mm256_movemask_epi8(_mm256_or_si256(_mm256_cmpeq_epi16(above, _mm256_set1_epi16(INT16_MAX)),
                                              _mm256_cmpeq_epi16(below, _mm256_set1_epi16(INT16_MIN)))) != 0;
}

static uint32_t arrange(const int8_t *b, uint32_t n, struct hn_int8_four *at) {
  uint32_t narrow = 0, wide = n;
  for (uint32_t i = 0; i < n; i++) {
    bool out = false;
    for (int j = 0; j < 2; j++)
      out = out || saturates(_mm256_load_si256((const __m256i *)(const void *)(b + 64 * (size_t)i + 32 * j)));
    at[out && !HN_FAULT("int8_narrow") ? --wide : narrow++].b = 64 * i;
  }
  return narrow;
}

static const hn_int8_ops ops = {.mr = FEW,
                                .nr = 16,
                                .k_step = 4,
                                .whole_rows = 1,
                                .rate = 2.6,
                                .begin = nothing,
                                .end = nothing,
                                .tile = few_rows,
                                .sum_rows = sum_rows,
                                .operand = operand,
                                .arrange = arrange};
const struct hn_kernel hn_kernel_gemm_int8_avx2 = {"gemm_int8_avx2", "gemm_int8", "u8s8", HN_ISA_AVX2, &ops};
