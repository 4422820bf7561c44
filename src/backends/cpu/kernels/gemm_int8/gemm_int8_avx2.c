/* VPMADDUBSW where no pair of products can saturate it, which packing finds out: of trained weights that is
 * most. Elsewhere even and odd bytes as words, VPMADDWD twice. 6 rows of 16 columns. */
#include <immintrin.h>

#include "backends/cpu/kernels/gemm_int8/gemm_int8.h"
#include "backends/cpu/kernels/template.h"

enum { MR = 6 };

/* Row i's sums with what the weights' offsets bring. */
static inline void add_offsets(__m256i *sum, const hn_int8_tile *t, int i) {
  const __m256i row = _mm256_set1_epi32(t->row_sum[i]);
  for (int j = 0; j < 2; j++)
    sum[j] = _mm256_add_epi32(
        sum[j], _mm256_mullo_epi32(row, _mm256_loadu_si256((const __m256i *)(t->offset + 8 * j))));
}

/* Sixteen sums as they are. */
static inline void store_whole(const __m256i *sum, const hn_int8_tile *t, char *c) {
  int32_t row[HN_INT8_BLOCK];
  for (int j = 0; j < 2; j++) _mm256_storeu_si256((__m256i *)(void *)(row + 8 * j), sum[j]);
  __builtin_memcpy(c, row, (HN_FAULT("int8_whole_tail") ? t->n - 1 : t->n) * sizeof *row);
}

/* Sixteen numbers of a row: two vectors of 8 sums. */
static inline void store_wide(const __m256i *sum, const hn_int8_tile *t, char *c) {
  float row[HN_INT8_BLOCK];
  for (int j = 0; j < 2; j++)
    _mm256_storeu_ps(row + 8 * j,
                     _mm256_mul_ps(_mm256_cvtepi32_ps(sum[j]), _mm256_loadu_ps(t->scale + 8 * j)));
  __builtin_memcpy(c, row, (HN_FAULT("int8_wide_tail") ? t->n - 1 : t->n) * sizeof *row);
}

/* Eight sums as words that codes are cut from, in the low or in the high half of each lane. */
static inline __m256i words_of(const __m256i *sum, const hn_int8_tile *t, __m256i zero) {
  __m256i r[2];
  for (int j = 0; j < 2; j++)
    r[j] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(sum[j]), _mm256_loadu_ps(t->scale + 8 * j)));
  return _mm256_adds_epi16(_mm256_packs_epi32(r[0], r[1]), zero);
}

/* Two rows of sixteen codes. */
static inline __attribute__((always_inline)) void store_two(__m256i sum[2][2], const hn_int8_tile *t,
                                                            char *c) {
  const __m256i zero = _mm256_set1_epi16((short)(HN_FAULT("int8_zero") ? 0 : t->zero)),
                first = words_of(sum[0], t, zero), second = words_of(sum[1], t, zero),
                bytes = t->is_signed ? _mm256_packs_epi16(first, second) : _mm256_packus_epi16(first, second),
                rows = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  _mm_storeu_si128((__m128i *)(void *)c, _mm256_castsi256_si128(rows));
  _mm_storeu_si128((__m128i *)(void *)(c + t->ldc), _mm256_extracti128_si256(rows, 1));
}

/* The same as codes. */
static inline void store_row(const __m256i *sum, const hn_int8_tile *t, char *c) {
  if (t->wide) {
    if (t->whole)
      store_whole(sum, t, c);
    else
      store_wide(sum, t, c);
    return;
  }
  const __m256i zero = _mm256_set1_epi16((short)(HN_FAULT("int8_zero") ? 0 : t->zero)),
                words = _mm256_permute4x64_epi64(words_of(sum, t, zero), 0xd8);
  const __m128i low = _mm256_castsi256_si128(words), high = _mm256_extracti128_si256(words, 1),
                bytes = t->is_signed ? _mm_packs_epi16(low, high) : _mm_packus_epi16(low, high);
  if (t->n == HN_INT8_BLOCK) {
    _mm_storeu_si128((__m128i *)(void *)c, bytes);
    return;
  }
  char rest[16];
  _mm_storeu_si128((__m128i *)(void *)rest, bytes);
  __builtin_memcpy(c, rest, HN_FAULT("int8_tail_mask") ? t->n - 1 : t->n);
}

/* Products of a row's four values with those of 16 columns, in words: whatever they are. */
static inline __attribute__((always_inline)) void
in_words(__m256i acc[MR][2], const uint8_t *a, ptrdiff_t lda, const int8_t *b, const int mr, const int nv) {
  const __m256i low = _mm256_set1_epi16(0xff);
  __m256i even[2], odd[2];
  HN_UNROLL for (int j = 0; j < nv; j++) {
    const __m256i v = _mm256_load_si256((const __m256i *)(const void *)(b + 32 * j));
    even[j] = _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8);
    odd[j] = _mm256_srai_epi16(v, 8);
  }
  HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) {
    int32_t four;
    __builtin_memcpy(&four, a + i * lda, 4);
    const __m256i v = _mm256_set1_epi32(four), x = _mm256_and_si256(v, low), y = _mm256_srli_epi16(v, 8);
    HN_UNROLL for (int j = 0; j < nv; j++) acc[i][j] = _mm256_add_epi32(
        acc[i][j], _mm256_add_epi32(_mm256_madd_epi16(x, even[j]), _mm256_madd_epi16(y, odd[j])));
  }
}

/* The same where pairs of products fit 16 bits: VPMADDUBSW does not saturate. */
static inline __attribute__((always_inline)) void
in_bytes(__m256i acc[MR][2], const uint8_t *a, ptrdiff_t lda, const int8_t *b, const int mr, const int nv) {
  const __m256i one = _mm256_set1_epi16(1);
  __m256i w[2];
  HN_UNROLL for (int j = 0; j < nv; j++) w[j] =
      _mm256_load_si256((const __m256i *)(const void *)(b + 32 * j));
  HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) {
    int32_t four;
    __builtin_memcpy(&four, a + i * lda, 4);
    const __m256i x = _mm256_set1_epi32(four);
    HN_UNROLL for (int j = 0; j < nv; j++) acc[i][j] =
        _mm256_add_epi32(acc[i][j], _mm256_madd_epi16(_mm256_maddubs_epi16(x, w[j]), one));
  }
}

static inline __attribute__((always_inline)) void tile_fixed(const hn_int8_tile *t, const int mr,
                                                             const int nv) {
  __m256i acc[MR][2];
  HN_UNROLL for (int i = 0; i < MR; i++) HN_UNROLL for (int j = 0; j < 2; j++) acc[i][j] =
      _mm256_loadu_si256((const __m256i *)(t->bias + 8 * j));
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
  char *c = t->c;
  if (t->row_sum) HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) add_offsets(acc[i], t, i);
  if (!t->wide && t->n == HN_INT8_BLOCK) {
    HN_UNROLL for (int i = 0; i + 1 < MR; i += 2) if (i + 1 < mr) store_two(acc + i, t, c + i * t->ldc);
    if (mr % 2) store_row(acc[mr - 1], t, c + (mr - 1) * t->ldc);
    return;
  }
  HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) store_row(acc[i], t, c + i * t->ldc);
}

/* The second half of the columns, where there is none, is not multiplied. */
static void tile(const hn_int8_tile *t) {
  const bool half = t->n <= HN_INT8_BLOCK / 2;
#define CASE(m)                                                                                              \
  case m:                                                                                                    \
    if (half)                                                                                                \
      tile_fixed(t, m, 1);                                                                                   \
    else                                                                                                     \
      tile_fixed(t, m, 2);                                                                                   \
    break;
  switch (t->m) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) }
#undef CASE
}

/* k bytes as four sums of 64 bits. */
static inline __m256i sum_bytes(const uint8_t *p, size_t k) {
  const __m256i zero = _mm256_setzero_si256();
  __m256i sum = zero;
  for (; k >= 32; k -= 32, p += 32)
    sum = _mm256_add_epi64(sum, _mm256_sad_epu8(_mm256_loadu_si256((const __m256i *)(const void *)p), zero));
  __m128i rest = _mm_setzero_si128();
  for (; k >= 8; k -= 8, p += 8)
    rest = _mm_add_epi64(
        rest, _mm_sad_epu8(_mm_loadl_epi64((const __m128i *)(const void *)p), _mm_setzero_si128()));
  uint32_t last = 0;
  for (; k > (HN_FAULT("int8_sum_rows") ? 1 : 0); k--) last += *p++;
  return _mm256_add_epi64(sum, _mm256_zextsi128_si256(_mm_add_epi64(rest, _mm_cvtsi32_si128((int)last))));
}

static void sum_rows(const hn_int8_rows *r) {
  for (int64_t i = 0; i < r->rows; i++) {
    __m256i sum = _mm256_setzero_si256();
    for (uint32_t s = 0; s < r->segments; s++)
      sum = _mm256_add_epi64(sum, sum_bytes(r->a + i * r->lda + (s ? r->segment_at[s] : 0), r->k));
    const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    r->sums[i] = _mm_cvtsi128_si32(_mm_add_epi64(half, _mm_unpackhi_epi64(half, half)));
  }
}

#include "backends/cpu/kernels/gemm_int8/int8_operand.inc"

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

static void nothing(void) {}

static const hn_int8_ops ops = {.mr = MR,
                                .nr = 16,
                                .k_step = 4,
                                .whole_rows = 1,
                                .rate = 2.6,
                                .begin = nothing,
                                .end = nothing,
                                .tile = tile,
                                .sum_rows = sum_rows,
                                .operand = operand,
                                .arrange = arrange};
const struct hn_kernel hn_kernel_gemm_int8_avx2 = {"gemm_int8_avx2", "gemm_int8", "u8s8", HN_ISA_AVX2, &ops};
