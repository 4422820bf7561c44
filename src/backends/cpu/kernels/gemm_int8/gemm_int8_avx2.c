/* Even and odd bytes as words, VPMADDWD twice (VPMADDUBSW would saturate); 4 rows of 16 columns. */
#include <immintrin.h>

#include "backends/cpu/kernels/gemm_int8/gemm_int8.h"
#include "backends/cpu/kernels/template.h"

enum { MR = 4 };

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

/* The same as codes. */
static inline void store_row(const __m256i *sum, const hn_int8_tile *t, char *c) {
  __m256i r[2];
  if (t->wide) {
    if (t->whole)
      store_whole(sum, t, c);
    else
      store_wide(sum, t, c);
    return;
  }
  for (int j = 0; j < 2; j++)
    r[j] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(sum[j]), _mm256_loadu_ps(t->scale + 8 * j)));
  const __m256i zero = _mm256_set1_epi16((short)(HN_FAULT("int8_zero") ? 0 : t->zero)),
                words =
                    _mm256_adds_epi16(_mm256_permute4x64_epi64(_mm256_packs_epi32(r[0], r[1]), 0xd8), zero);
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

static inline __attribute__((always_inline)) void tile_fixed(const hn_int8_tile *t, const int mr) {
  __m256i acc[MR][2];
  const int8_t *b = t->b;
  const __m256i low = _mm256_set1_epi16(0xff);
  HN_UNROLL for (int i = 0; i < MR; i++) HN_UNROLL for (int j = 0; j < 2; j++) acc[i][j] =
      _mm256_loadu_si256((const __m256i *)(t->bias + 8 * j));
  for (uint32_t s = 0; s < t->segments; s++) {
    const uint8_t *a = t->a + (s ? t->segment_at[s] : 0);
    for (size_t k = HN_FAULT("int8_last_k") ? 4 : 0; k < t->k; k += 4, a += 4, b += 64) {
      __m256i even[2], odd[2];
      HN_UNROLL for (int j = 0; j < 2; j++) {
        const __m256i v = _mm256_load_si256((const __m256i *)(const void *)(b + 32 * j));
        even[j] = _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8);
        odd[j] = _mm256_srai_epi16(v, 8);
      }
      HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) {
        int32_t four;
        __builtin_memcpy(&four, a + i * t->lda, 4);
        const __m256i v = _mm256_set1_epi32(four), x = _mm256_and_si256(v, low), y = _mm256_srli_epi16(v, 8);
        HN_UNROLL for (int j = 0; j < 2; j++) acc[i][j] = _mm256_add_epi32(
            acc[i][j], _mm256_add_epi32(_mm256_madd_epi16(x, even[j]), _mm256_madd_epi16(y, odd[j])));
      }
    }
  }
  HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) {
    if (t->row_sum) add_offsets(acc[i], t, i);
    store_row(acc[i], t, (char *)t->c + i * t->ldc);
  }
}

static void tile(const hn_int8_tile *t) {
  switch (t->m) {
  case 1: tile_fixed(t, 1); break;
  case 2: tile_fixed(t, 2); break;
  case 3: tile_fixed(t, 3); break;
  default: tile_fixed(t, 4);
  }
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

static void nothing(void) {}

static const hn_int8_ops ops = {.mr = MR,
                                .nr = 16,
                                .k_step = 4,
                                .whole_rows = 1,
                                .rate = 1.6,
                                .begin = nothing,
                                .end = nothing,
                                .tile = tile,
                                .sum_rows = sum_rows,
                                .operand = operand};
const struct hn_kernel hn_kernel_gemm_int8_avx2 = {"gemm_int8_avx2", "gemm_int8", "u8s8", HN_ISA_AVX2, &ops};
