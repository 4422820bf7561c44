/* AVX512-BF16: VDPBF16PS adds two products of bf16 pairs to each of 16 sums.  Blocks of 14 rows x 32 columns:
 * 28 sums, 2 vectors of B, 1 broadcast pair of A.  Operands of one part only: three of these products cost
 * more than one of f32 wherever this instruction is at most twice as fast.  It is that on AMD; Intel's
 * processors take two cycles for each and have tiles instead. */
#include <string.h>

#include "backends/cpu/kernels/gemm_bf16/gemm_bf16.h"
#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec.h"

/* The instruction takes denormals as 0, as the products do. */
static inline void store_bf16(void *p, vf x) { _mm256_storeu_si256(p, (__m256i)_mm512_cvtneps_pbh(x)); }
#define NARROW_LOAD v_load_bf16
#define NARROW_STORE store_bf16
#include "backends/cpu/kernels/gemm_bf16/bf16_store.inc"

#include "backends/cpu/kernels/gemm_bf16/bf16_split.inc"

#include "backends/cpu/kernels/gemm_bf16/narrow_copy.inc"

#include "backends/cpu/kernels/gemm_bf16/bf16_gelu.inc"

enum { MR = 14 };

static void begin(uint32_t rows) { (void)rows; }
static void end(void) {}

static inline __attribute__((always_inline)) __m512bh pair(const uint16_t *p) {
  int32_t v;
  memcpy(&v, p, 4);
  return (__m512bh)_mm512_set1_epi32(v);
}

/* Each step's share of n, without a division where it is one or none: that takes as long as a step. */
static inline size_t share_of(size_t n, size_t steps) {
  return n <= steps ? n > 0 : steps ? (n + steps - 1) / steps : 0;
}

/* mr rows, nt column tiles: constants after inlining. */
static inline __attribute__((always_inline)) void tile_fixed(const hn_bf16_tile *t, const int mr,
                                                             const int nt) {
  __m512 acc[MR][2];
  const uint16_t *b = t->b;
  const ptrdiff_t row = t->row;
  const bool add = t->accumulate && !HN_FAULT("bf16_no_accumulate");
  const char *pf = t->prefetch, *pf_end = pf + t->prefetch_bytes;
  const size_t steps = t->steps - (HN_FAULT("bf16_last_step") && t->steps > 0);
  const size_t lines = (t->prefetch_bytes + 63) / 64, share = share_of(lines, steps);
  HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) HN_UNROLL for (int j = 0; j < 2; j++) acc[i][j] =
      add && j < nt ? _mm512_load_ps(t->c + i * HN_BF16_PANEL + j * 16) : _mm512_setzero_ps();
  for (size_t s = 0; s < steps; s++, b += nt * HN_BF16_TILE) {
    const uint16_t *p[(MR + 2) / 3];
    HN_UNROLL for (int g = 0; g < (MR + 2) / 3; g++) p[g] =
        t->a + t->step[s] + (3 * g < mr ? 3 * g : 0) * row;
    const int pairs = t->short_pairs && s >= t->short_from ? (int)t->short_pairs - HN_FAULT("bf16_short_step")
                                                           : HN_BF16_STEP / 2;
    for (int k = 0; k < pairs; k++) {
      __m512bh bv[2];
      HN_UNROLL for (int j = 0; j < 2; j++) if (j < nt) {
        bv[j] = (__m512bh)_mm512_load_si512(b + j * HN_BF16_TILE + k * 32);
        __builtin_prefetch(b + (nt + j) * HN_BF16_TILE + k * 32, 0, 3); /* of the step after this one */
      }
      HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) {
        const __m512bh x = pair(p[i / 3] + (i % 3) * row);
        HN_UNROLL for (int j = 0; j < 2; j++) if (j < nt) acc[i][j] = _mm512_dpbf16_ps(acc[i][j], x, bv[j]);
      }
      HN_UNROLL for (int g = 0; g < (MR + 2) / 3; g++) if (3 * g < mr) {
        p[g] += 2;
        __asm__(
            ""
            : "+r"(p[g])); /* keep one pointer a group: the compiler would make one a row and spill them */
      }
    }
    for (size_t i = 0; i < share && pf < pf_end; i++, pf += 64) __builtin_prefetch(pf, 0, 2);
  }
  HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) HN_UNROLL for (int j = 0; j < 2; j++) if (j < nt)
      _mm512_store_ps(t->c + i * HN_BF16_PANEL + j * 16, acc[i][j]);
}

#define ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#define INSTANCE(m)                                                                                          \
  static void tile_##m##_1(const hn_bf16_tile *t) { tile_fixed(t, m, 1); }                                   \
  static void tile_##m##_2(const hn_bf16_tile *t) { tile_fixed(t, m, 2); }
ROWS(INSTANCE)
#undef INSTANCE

static void tile(const hn_bf16_tile *t) {
#define ENTRY(m) {tile_##m##_1, tile_##m##_2},
  static void (*const table[MR][2])(const hn_bf16_tile *) = {ROWS(ENTRY)};
#undef ENTRY
  table[t->m - 1][t->n > 16](t);
}

#include "backends/cpu/kernels/gemm_bf16/bf16_fused.inc"

static const hn_bf16_ops ops = {.rows = MR,
                                .row_tiles = 1,
                                .parts = 1,
                                .x1_rate = 0,
                                .begin = begin,
                                .end = end,
                                .tile = tile,
                                .store = store,
                                .fused = fused,
                                .gelu = true,
                                .split = split,
                                .rows_to_steps = rows_to_steps,
                                .copy_to_steps = copy_to_steps,
                                .pack_tile = pack_tile};
const struct hn_kernel hn_kernel_gemm_bf16_avx512 = {"gemm_bf16_avx512", "gemm_bf16", "bf16",
                                                     HN_ISA_AVX512BF16, &ops};
