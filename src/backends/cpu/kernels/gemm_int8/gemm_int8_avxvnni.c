/* VPDPBUSD without AVX-512: 6 rows of 16 columns, whose 12 sums hide the instruction's five cycles on two
 * ports, two vectors of weights and a row's four values fill the 16 registers but one. */
#include <immintrin.h>

#include "backends/cpu/kernels/gemm_int8/gemm_int8.h"
#include "backends/cpu/kernels/template.h"

enum { MR = 6 };

static inline __attribute__((always_inline)) void products(const hn_int8_tile *t, __m256i acc[MR][2],
                                                           const int mr, const int nv) {
  const ptrdiff_t lda = t->lda;
  const int8_t *b = t->b;
  for (uint32_t s = 0; s < t->segments; s++) {
    /* Rows are addressed as three from one pointer: base, base + lda, base + 2 lda. */
    const uint8_t *const a = t->a + (s ? t->segment_at[s] : 0), *p[] = {a, a + (mr > 3 ? 3 : 0) * lda};
    for (size_t k = HN_FAULT("int8_last_k") ? 4 : 0; k < t->k; k += 4, b += 4 * HN_INT8_BLOCK) {
      __m256i w[2];
      HN_UNROLL for (int j = 0; j < nv; j++) w[j] =
          _mm256_load_si256((const __m256i *)(const void *)(b + 32 * j));
      HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) {
        int32_t four;
        __builtin_memcpy(&four, p[i / 3] + (i % 3) * lda, 4);
        const __m256i x = _mm256_set1_epi32(four);
        HN_UNROLL for (int j = 0; j < nv; j++) acc[i][j] = _mm256_dpbusd_avx_epi32(acc[i][j], x, w[j]);
      }
      HN_UNROLL for (int g = 0; g < 2; g++) {
        p[g] += 4;
        __asm__("" : "+r"(p[g])); /* keep one pointer a group */
      }
    }
  }
}

#include "backends/cpu/kernels/gemm_int8/int8_operand.inc"
#include "backends/cpu/kernels/gemm_int8/int8_tile256.inc"

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
const struct hn_kernel hn_kernel_gemm_int8_avxvnni = {"gemm_int8_avxvnni", "gemm_int8", "u8s8", HN_ISA_AVXVNNI,
                                                      &ops};
