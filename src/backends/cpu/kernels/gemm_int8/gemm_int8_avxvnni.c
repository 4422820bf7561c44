/* VPDPBUSD without AVX-512. A sum comes after five cycles on two ports, so ten of them have to be under way,
 * and 16 registers hold either 6 rows of 16 columns, two vectors of weights and a row's four values, or 14
 * rows of 8 columns: larger tiles are taken in two halves, between which weights stay in L1. */
#include <immintrin.h>

#include "backends/cpu/kernels/gemm_int8/gemm_int8.h"
#include "backends/cpu/kernels/template.h"

enum { MR = 14, FEW = 6, HALF = HN_INT8_BLOCK / 2 };

/* mr rows of nv vectors of 8 columns, from column `at` on; constants after inlining. */
static inline __attribute__((always_inline)) void add_products(const hn_int8_tile *t, __m256i *acc,
                                                               const int at, const int mr, const int nv) {
  const ptrdiff_t lda = t->lda, ahead_step = t->ahead_step;
  const int8_t *b = t->b + 4 * at, *ahead = t->ahead ? t->ahead : b;
  for (uint32_t s = 0; s < t->segments; s++) {
    /* Rows are addressed as three from one pointer: base, base + lda, base + 2 lda. */
    const uint8_t *p[(MR + 2) / 3], *const a = t->a + (s ? t->segment_at[s] : 0);
    HN_UNROLL for (int g = 0; g < (MR + 2) / 3; g++) p[g] = a + (3 * g < mr ? 3 * g : 0) * lda;
    for (size_t k = HN_FAULT("int8_last_k") ? 4 : 0; k < t->k; k += 4, b += 4 * HN_INT8_BLOCK) {
      __m256i w[2];
      HN_UNROLL for (int j = 0; j < nv; j++) w[j] =
          _mm256_load_si256((const __m256i *)(const void *)(b + 32 * j));
      HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) {
        int32_t four;
        __builtin_memcpy(&four, p[i / 3] + (i % 3) * lda, 4);
        const __m256i x = _mm256_set1_epi32(four);
        HN_UNROLL for (int j = 0; j < nv; j++) acc[i * nv + j] =
            _mm256_dpbusd_avx_epi32(acc[i * nv + j], x, w[j]);
      }
      HN_UNROLL for (int g = 0; g < (MR + 2) / 3; g++) if (3 * g < mr) {
        p[g] += 4;
        __asm__("" : "+r"(p[g])); /* keep one pointer a group */
      }
      _mm_prefetch((const char *)ahead, _MM_HINT_T1);
      ahead += ahead_step;
    }
  }
}

static inline __attribute__((always_inline)) void products(const hn_int8_tile *t, __m256i acc[FEW][2],
                                                           const int mr, const int nv) {
  __m256i sum[FEW * 2];
  HN_UNROLL for (int i = 0; i < FEW * nv; i++) sum[i] = acc[i / nv][i % nv];
  add_products(t, sum, 0, mr, nv);
  HN_UNROLL for (int i = 0; i < FEW * nv; i++) acc[i / nv][i % nv] = sum[i];
}

#include "backends/cpu/kernels/gemm_int8/int8_operand.inc"
#include "backends/cpu/kernels/gemm_int8/int8_tile256.inc"

/* rows of 8 sums, 4 at most, as n codes each. */
static inline __attribute__((always_inline)) void
store_codes(const __m256i *sum, const hn_int8_tile *t, const int at, const int rows, uint32_t n, char *c) {
  const __m256 scale = _mm256_loadu_ps(t->scale + at);
  const __m256i zero = _mm256_set1_epi16((short)(HN_FAULT("int8_zero") ? 0 : t->zero));
  __m256i r[4];
  HN_UNROLL for (int i = 0; i < 4; i++) r[i] =
      _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(sum[i < rows ? i : 0]), scale));
  const __m256i first = _mm256_adds_epi16(_mm256_packs_epi32(r[0], r[1]), zero),
                second = _mm256_adds_epi16(_mm256_packs_epi32(r[2], r[3]), zero),
                bytes = t->is_signed ? _mm256_packs_epi16(first, second) : _mm256_packus_epi16(first, second),
                all = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  if (n == HALF) {
    const __m128i two[] = {_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1)};
    HN_UNROLL for (int i = 0; i < 4; i++) if (i < rows) {
      if (i % 2)
        _mm_storeh_pi((__m64 *)(void *)(c + i * t->ldc), _mm_castsi128_ps(two[i / 2])); /* at any address */
      else
        _mm_storel_epi64((__m128i *)(void *)(c + i * t->ldc), two[i / 2]);
    }
    return;
  }
  char rest[32];
  _mm256_storeu_si256((__m256i *)(void *)rest, all);
  HN_UNROLL for (int i = 0; i < 4; i++) if (i < rows)
      __builtin_memcpy(c + i * t->ldc, rest + 8 * i, HN_FAULT("int8_tail_mask") ? n - 1 : n);
}

/* A row of 8 sums as n numbers, or as they are. */
static inline void store_numbers(__m256i sum, const hn_int8_tile *t, const int at, uint32_t n, char *c) {
  if ((t->whole && HN_FAULT("int8_whole_tail")) || (!t->whole && HN_FAULT("int8_wide_tail"))) n--;
  const __m256 v = t->whole ? _mm256_castsi256_ps(sum)
                            : _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_loadu_ps(t->scale + at));
  if (n == HALF) {
    _mm256_storeu_ps((float *)(void *)c, v);
    return;
  }
  float rest[HALF];
  _mm256_storeu_ps(rest, v);
  __builtin_memcpy(c, rest, n * sizeof *rest);
}

/* mr rows of the 8 columns from `at` on. */
static inline __attribute__((always_inline)) void half_fixed(const hn_int8_tile *t, const int at,
                                                             const int mr) {
  __m256i acc[MR];
  const uint32_t left = t->n - (uint32_t)at, n = left < HALF ? left : HALF;
  HN_UNROLL for (int i = 0; i < MR; i++) acc[i] = _mm256_loadu_si256((const __m256i *)(t->bias + at));
  add_products(t, acc, at, mr, 1);
  if (t->row_sum) {
    const __m256i offset = _mm256_loadu_si256((const __m256i *)(t->offset + at));
    HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) acc[i] =
        _mm256_add_epi32(acc[i], _mm256_mullo_epi32(_mm256_set1_epi32(t->row_sum[i]), offset));
  }
  char *c = (char *)t->c + at * (t->wide ? (int)sizeof(float) : 1);
  if (t->wide) {
    HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) store_numbers(acc[i], t, at, n, c + i * t->ldc);
    return;
  }
  HN_UNROLL for (int i = 0; i < MR; i += 4) if (i < mr)
      store_codes(acc + i, t, at, mr - i < 4 ? mr - i : 4, n, c + i * t->ldc);
}

static void two_halves(const hn_int8_tile *t) {
#define CASE(m)                                                                                              \
  case m:                                                                                                    \
    half_fixed(t, 0, m);                                                                                     \
    if (t->n > HALF) half_fixed(t, HALF, m);                                                                 \
    break;
  switch (t->m) { CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14) }
#undef CASE
}

static void tile(const hn_int8_tile *t) {
  if (t->m <= FEW)
    few_rows(t);
  else
    two_halves(t);
}

static const hn_int8_ops ops = {.mr = MR,
                                .nr = 16,
                                .k_step = 4,
                                .whole_rows = 1,
                                .rate = 6,
                                .begin = nothing,
                                .end = nothing,
                                .tile = tile,
                                .sum_rows = sum_rows,
                                .operand = operand};
const struct hn_kernel hn_kernel_gemm_int8_avxvnni = {"gemm_int8_avxvnni", "gemm_int8", "u8s8",
                                                      HN_ISA_AVXVNNI, &ops};
