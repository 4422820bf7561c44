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

/* ---------------------------------------------------------------- sums that never are in memory */

typedef struct live_columns {
  __mmask16 of[2]; /* by vector */
} live_columns;

static inline live_columns live_of(uint32_t n) {
  if (HN_FAULT("bf16_fused_tail") && n % 16) n--;
  const uint32_t m = n < HN_BF16_PANEL ? (1u << n) - 1u : ~0u;
  return (live_columns){{(__mmask16)m, (__mmask16)(m >> 16)}};
}

static inline __attribute__((always_inline)) __m512 load_residual16(const hn_bf16_store *s, ptrdiff_t i,
                                                                    __mmask16 live) {
  if (!(s->flags & HN_BF16_NARROW_RESIDUAL))
    return _mm512_maskz_loadu_ps(live, (const float *)s->residual + i);
  const __m256i half = _mm256_maskz_loadu_epi16(live, (const uint16_t *)s->residual + i);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

static inline __attribute__((always_inline)) void add_residual(const hn_bf16_store *s, __m512 acc[][2],
                                                               size_t first, const int mr, const int nt,
                                                               const live_columns *live) {
  HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) HN_UNROLL for (int j = 0; j < nt; j++) acc[i][j] =
      _mm512_add_ps(acc[i][j], load_residual16(s, ((ptrdiff_t)first + i) * s->ldr + j * 16, live->of[j]));
}

/* Rows first .. first + mr - 1 on their way out. */
static inline __attribute__((always_inline)) void way_out(const hn_bf16_store *s, __m512 acc[][2],
                                                          size_t first, const int mr, const int nt,
                                                          const live_columns *live) {
  const uint32_t flags = s->flags;
  if ((flags & (HN_EPI_RESIDUAL | HN_EPI_RESIDUAL_AFTER)) == HN_EPI_RESIDUAL)
    add_residual(s, acc, first, mr, nt, live);
  if (flags & HN_EPI_CLAMP) {
    const __m512 lo = _mm512_set1_ps(s->lo), hi = _mm512_set1_ps(s->hi);
    /* NaN passes: these return their second operand. */
    HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) HN_UNROLL for (int j = 0; j < nt; j++) acc[i][j] =
        _mm512_min_ps(hi, _mm512_max_ps(lo, acc[i][j]));
  } else if (flags & HN_EPI_LEAKY) {
    const __m512 slope = _mm512_set1_ps(s->slope), zero = _mm512_setzero_ps();
    HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) HN_UNROLL for (int j = 0; j < nt; j++) acc[i][j] =
        _mm512_mask_mul_ps(acc[i][j], _mm512_cmp_ps_mask(acc[i][j], zero, _CMP_LT_OQ), acc[i][j], slope);
  }
  if ((flags & HN_EPI_RESIDUAL) && (flags & HN_EPI_RESIDUAL_AFTER)) add_residual(s, acc, first, mr, nt, live);
  const int32_t *at = s->at;
  if (flags & HN_BF16_PAIRS) {
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23,
                                           7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    /* Columns that are not there: 0 times Inf is none. */
    if (s->n % 16)
      HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) acc[i][nt - 1] =
          _mm512_maskz_mov_ps(live->of[nt - 1], acc[i][nt - 1]);
    uint16_t *c = s->c;
    HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) {
      const ptrdiff_t place = at ? at[first + (size_t)i] : ((ptrdiff_t)first + i) * s->ldc;
      const __m512i v =
          nt > 1 ? _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(acc[i][nt - 1], acc[i][0]))
                 : _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(acc[i][0]));
      _mm512_storeu_si512(c + place, v);
    }
    return;
  }
  const bool narrow = flags & HN_BF16_NARROW_C;
  HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) {
    const ptrdiff_t place = at ? at[first + (size_t)i] : ((ptrdiff_t)first + i) * s->ldc;
    HN_UNROLL for (int j = 0; j < nt; j++) {
      const bool whole = j + 1 < nt || live->of[j] == 0xffff;
      if (narrow) {
        uint16_t *c = (uint16_t *)s->c + place + j * 16;
        const __m256i v = (__m256i)_mm512_cvtneps_pbh(acc[i][j]);
        if (whole)
          _mm256_storeu_si256((__m256i *)(void *)c, v);
        else
          _mm256_mask_storeu_epi16(c, live->of[j], v);
      } else {
        float *c = (float *)s->c + place + j * 16;
        if (whole)
          _mm512_storeu_ps(c, acc[i][j]);
        else
          _mm512_mask_storeu_ps(c, live->of[j], acc[i][j]);
      }
    }
  }
}

static inline ptrdiff_t place_of(const hn_bf16_store *s, size_t row) {
  return s->at ? s->at[row] : (ptrdiff_t)row * s->ldc;
}

/* Asks for the lines that row `row` goes to, and those of its residual. */
static inline __attribute__((always_inline)) void ask_for(const hn_bf16_store *s, size_t row, const int nt) {
  const size_t c_size = s->flags & (HN_BF16_NARROW_C | HN_BF16_PAIRS) ? 2 : 4;
  const char *c = (const char *)s->c + place_of(s, row) * (ptrdiff_t)c_size;
  __builtin_prefetch(c, 1, 3);
  if (c_size == 4 && nt > 1) __builtin_prefetch(c + 64, 1, 3);
  if (!(s->flags & HN_EPI_RESIDUAL)) return;
  const bool narrow = s->flags & HN_BF16_NARROW_RESIDUAL;
  const char *r = (const char *)s->residual + (ptrdiff_t)row * s->ldr * (narrow ? 2 : 4);
  __builtin_prefetch(r, 0, 3);
  if (!narrow && nt > 1) __builtin_prefetch(r + 64, 0, 3);
}

/* The same through Gelu. */
static inline __attribute__((always_inline)) void gelu_out(const hn_bf16_store *s, __m512 acc[][2],
                                                           size_t first, const int mr, const int nt,
                                                           const live_columns *live) {
  _Alignas(64) float sums[MR * HN_BF16_PANEL];
  HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) HN_UNROLL for (int j = 0; j < nt; j++)
      _mm512_store_ps(sums + i * HN_BF16_PANEL + j * 16, acc[i][j]);
  gelu_rows(s, sums, first, (size_t)mr, live->of);
}

/* gelu: a constant, too; instances of their own, as what is done with the sums costs the loop before it
 * registers. */
static inline __attribute__((always_inline)) void fused_fixed(const hn_bf16_tile *t, const hn_bf16_store *s,
                                                              size_t first, const int mr, const int nt,
                                                              const bool gelu) {
  __m512 acc[MR][2];
  const live_columns live = live_of(t->n);
  const uint16_t *b = t->b;
  const ptrdiff_t row = t->row;
  const size_t steps = t->steps;
  const uint16_t *a = t->a + (ptrdiff_t)first * row;
  const bool bias = (s->flags & HN_EPI_BIAS) && !HN_FAULT("bf16_fused_no_bias");
  HN_UNROLL for (int j = 0; j < nt; j++) {
    const __m512 begin = bias ? _mm512_maskz_loadu_ps(live.of[j], s->bias + j * 16) : _mm512_setzero_ps();
    HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) acc[i][j] = begin;
  }
  const char *pf = t->prefetch, *pf_end = pf + t->prefetch_bytes;
  const size_t lines = (t->prefetch_bytes + 63) / 64, share = share_of(lines, steps);
  const size_t asked = share_of((size_t)mr, steps); /* rows */
  for (size_t k0 = 0, next = 0; k0 < steps; k0++, b += nt * HN_BF16_TILE) {
    for (size_t i = 0; i < asked && next < (size_t)mr; i++, next++) ask_for(s, first + next, nt);
    const uint16_t *p[(MR + 2) / 3];
    HN_UNROLL for (int g = 0; g < (MR + 2) / 3; g++) p[g] = a + t->step[k0] + (3 * g < mr ? 3 * g : 0) * row;
    const int pairs = t->short_pairs && k0 >= t->short_from ? (int)t->short_pairs : HN_BF16_STEP / 2;
    for (int k = 0; k < pairs; k++) {
      __m512bh bv[2];
      HN_UNROLL for (int j = 0; j < nt; j++) {
        bv[j] = (__m512bh)_mm512_load_si512(b + j * HN_BF16_TILE + k * 32);
        __builtin_prefetch(b + (nt + j) * HN_BF16_TILE + k * 32, 0, 3); /* of the step after this one */
      }
      HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr) {
        const __m512bh x = pair(p[i / 3] + (i % 3) * row);
        HN_UNROLL for (int j = 0; j < nt; j++) acc[i][j] = _mm512_dpbf16_ps(acc[i][j], x, bv[j]);
      }
      HN_UNROLL for (int g = 0; g < (MR + 2) / 3; g++) if (3 * g < mr) {
        p[g] += 2;
        __asm__("" : "+r"(p[g])); /* one pointer a group, as above */
      }
    }
    for (size_t i = 0; i < share && pf < pf_end; i++, pf += 64) __builtin_prefetch(pf, 0, 2);
  }
  if (gelu)
    gelu_out(s, acc, first, mr, nt, &live);
  else
    way_out(s, acc, first, mr, nt, &live);
}

#define INSTANCE(m, nt, gelu)                                                                                \
  static void fused_##m##_##nt##_##gelu(const hn_bf16_tile *t, const hn_bf16_store *s, size_t first) {       \
    fused_fixed(t, s, first, m, nt, gelu);                                                                   \
  }
#define INSTANCES(m) INSTANCE(m, 1, 0) INSTANCE(m, 1, 1) INSTANCE(m, 2, 0) INSTANCE(m, 2, 1)
ROWS(INSTANCES)
#undef INSTANCE
#undef INSTANCES

/* Row tiles as equal as can be. */
static void fused(const hn_bf16_tile *t, const hn_bf16_store *s) {
#define ENTRY(m) {{fused_##m##_1_0, fused_##m##_1_1}, {fused_##m##_2_0, fused_##m##_2_1}},
  static void (*const table[MR][2][2])(const hn_bf16_tile *, const hn_bf16_store *, size_t) = {ROWS(ENTRY)};
#undef ENTRY
  const bool gelu = s->flags & HN_BF16_GELU;
  const size_t tiles = (t->m + MR - 1) / MR, least = t->m / tiles, more = t->m % tiles;
  const size_t share = ((t->prefetch_bytes + tiles - 1) / tiles + 63) & ~(size_t)63;
  hn_bf16_tile part = *t;
  for (size_t i = 0, first = 0; i < tiles; i++) {
    const size_t rows = least + (i < more), at = i * share;
    part.prefetch = at < t->prefetch_bytes ? t->prefetch + at : NULL;
    part.prefetch_bytes = !part.prefetch                   ? 0
                          : t->prefetch_bytes - at < share ? t->prefetch_bytes - at
                                                           : share;
    table[rows - 1][t->n > 16][gelu](&part, s, first);
    first += rows;
  }
}

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
