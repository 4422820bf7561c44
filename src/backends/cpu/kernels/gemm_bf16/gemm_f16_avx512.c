/* AVX512-FP16: 32 multiply-adds of f16 an instruction, at the pace of those of f32, but with sums in f16.
 * Blocks of 28 rows x 32 columns: 28 sums, 1 vector of B, A broadcast from memory.  Sums of RUN steps (64
 * products) are made so and added to f32 ones.  A tier avx512bf16 processor may lack the instructions
 * (hn_cpu()->fp16). */
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/kernels/gemm_bf16/gemm_bf16.h"
#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec.h"

#define NARROW_LOAD v_load_f16
#define NARROW_STORE v_store_f16
#include "backends/cpu/kernels/gemm_bf16/bf16_store.inc"

#include "backends/cpu/kernels/gemm_bf16/narrow_copy.inc"

enum { MR = 28, GROUPS = (MR + 2) / 3, RUN = HN_F16_RUN / HN_BF16_STEP };

static void begin(uint32_t rows) { (void)rows; }
static void end(void) {}

static void split(const float *x, size_t n, uint16_t *to, ptrdiff_t apart, uint32_t parts) {
  (void)apart, (void)parts;
  size_t i = 0;
  for (; i + VEC_W <= n; i += VEC_W) v_store_f16(to + i, v_load(x + i));
  if (i == n) return;
  uint16_t tail[VEC_W];
  v_store_f16(tail, v_loadn(x + i, n - i));
  memcpy(to + i, tail, (n - i) * sizeof *to);
}

static void rows_to_steps(const float *x, ptrdiff_t pitch, size_t pixels, size_t n, uint16_t *to,
                          ptrdiff_t block, uint32_t parts) {
  (void)parts;
  if (HN_FAULT("bf16_rows_last") && n > 1) n--;
  const size_t full = n / HN_BF16_STEP, tail = n % HN_BF16_STEP, high = tail > VEC_W ? tail - VEC_W : 0;
  for (size_t i = 0; i < pixels; i++, x += pitch, to += HN_BF16_STEP) {
    uint16_t *d = to;
    for (size_t b = 0; b < full; b++, d += block) {
      v_store_f16(d, v_load(x + b * HN_BF16_STEP));
      v_store_f16(d + VEC_W, v_load(x + b * HN_BF16_STEP + VEC_W));
    }
    if (!tail) continue;
    const float *p = x + full * HN_BF16_STEP;
    v_store_f16(d, v_loadn(p, tail < VEC_W ? tail : VEC_W));
    v_store_f16(d + VEC_W, high ? v_loadn(p + VEC_W, high) : v_zero());
  }
}

/* The sums of a run go to the block; the first ones of all are stored. */
static inline __attribute__((always_inline)) void add_low(float *c, __m256h sums, bool add) {
  const __m512 x = _mm512_cvtxph_ps(sums);
  _mm512_store_ps(c, add ? _mm512_add_ps(_mm512_load_ps(c), x) : x);
}

static inline __attribute__((always_inline)) __m256h high_half(__m512h x) {
  return (__m256h)_mm512_extracti64x4_epi64((__m512i)x, 1);
}

#define EACH_ROW HN_UNROLL for (int i = 0; i < MR; i++) if (i < mr)
#define EACH_GROUP HN_UNROLL for (int g = 0; g < GROUPS; g++) if (3 * g < mr)
/* One pointer a group of three rows: the compiler would make one a row and spill them. */
#define NEXT EACH_GROUP p[g]++, ({ __asm__("" : "+r"(p[g])); })

typedef struct ahead {
  const char *at, *end;
  size_t share; /* lines a step */
} ahead;

static inline __attribute__((always_inline)) void pull(ahead *f) {
  for (size_t i = 0; i < f->share && f->at < f->end; i++, f->at += 64) __builtin_prefetch(f->at, 0, 2);
}

/* Steps [s, end) of mr rows x 32 columns, mr a constant after inlining. */
static inline __attribute__((always_inline)) void run_wide(const hn_bf16_tile *t, size_t s, size_t end,
                                                           bool add, ahead *f, const int mr) {
  enum { PREFETCH_AHEAD = 512 }; /* values */
  const _Float16 *b = (const _Float16 *)(const void *)t->b + s * 2 * HN_BF16_TILE;
  __m512h acc[MR];
  EACH_ROW acc[i] = _mm512_setzero_ph();
  for (; s < end; s++) {
    const _Float16 *p[GROUPS];
    EACH_GROUP p[g] = (const _Float16 *)(const void *)t->a + t->step[s] + 3 * g * t->row;
    for (int k = 0; k < HN_BF16_STEP; k++, b += 32) {
      const __m512h bv = _mm512_load_ph(b);
      __builtin_prefetch(b + PREFETCH_AHEAD, 0, 3);
      EACH_ROW acc[i] = _mm512_fmadd_ph(_mm512_set1_ph(p[i / 3][i % 3 * t->row]), bv, acc[i]);
      NEXT;
    }
    pull(f);
  }
  EACH_ROW {
    add_low(t->c + i * HN_BF16_PANEL, _mm512_castph512_ph256(acc[i]), add);
    add_low(t->c + i * HN_BF16_PANEL + 16, high_half(acc[i]), add);
  }
}

/* The same with 16 columns. */
static inline __attribute__((always_inline)) void run_half(const hn_bf16_tile *t, size_t s, size_t end,
                                                           bool add, ahead *f, const int mr) {
  const _Float16 *b = (const _Float16 *)(const void *)t->b + s * HN_BF16_TILE;
  __m256h acc[MR];
  EACH_ROW acc[i] = _mm256_setzero_ph();
  for (; s < end; s++) {
    const _Float16 *p[GROUPS];
    EACH_GROUP p[g] = (const _Float16 *)(const void *)t->a + t->step[s] + 3 * g * t->row;
    for (int k = 0; k < HN_BF16_STEP; k++, b += 16) {
      const __m256h bv = _mm256_load_ph(b);
      EACH_ROW acc[i] = _mm256_fmadd_ph(_mm256_set1_ph(p[i / 3][i % 3 * t->row]), bv, acc[i]);
      NEXT;
    }
    pull(f);
  }
  EACH_ROW add_low(t->c + i * HN_BF16_PANEL, acc[i], add);
}

static inline __attribute__((always_inline)) void tile_fixed(const hn_bf16_tile *t, const int mr,
                                                             const bool wide) {
  const size_t steps = t->steps - (HN_FAULT("bf16_last_step") && t->steps > 0);
  bool add = t->accumulate && !HN_FAULT("bf16_no_accumulate");
  const size_t lines = (t->prefetch_bytes + 63) / 64;
  ahead f = {t->prefetch, t->prefetch + t->prefetch_bytes, steps ? (lines + steps - 1) / steps : 0};
  for (size_t s = 0; s < steps || !add; s += RUN, add = true) {
    const size_t end = s + RUN < steps ? s + RUN : steps;
    if (wide)
      run_wide(t, s, end, add, &f, mr);
    else
      run_half(t, s, end, add, &f, mr);
  }
}

#define ROWS(X)                                                                                              \
  X(1)                                                                                                       \
  X(2)                                                                                                       \
  X(3)                                                                                                       \
  X(4)                                                                                                       \
  X(5)                                                                                                       \
  X(6)                                                                                                       \
  X(7)                                                                                                       \
  X(8)                                                                                                       \
  X(9)                                                                                                       \
  X(10)                                                                                                      \
  X(11)                                                                                                      \
  X(12)                                                                                                      \
  X(13)                                                                                                      \
  X(14)                                                                                                      \
  X(15)                                                                                                      \
  X(16)                                                                                                      \
  X(17)                                                                                                      \
  X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28)
#define INSTANCE(m)                                                                                          \
  static void tile_##m##_half(const hn_bf16_tile *t) { tile_fixed(t, m, false); }                            \
  static void tile_##m##_wide(const hn_bf16_tile *t) { tile_fixed(t, m, true); }
ROWS(INSTANCE)
#undef INSTANCE

static void tile(const hn_bf16_tile *t) {
#define ENTRY(m) {tile_##m##_half, tile_##m##_wide},
  static void (*const table[MR][2])(const hn_bf16_tile *) = {ROWS(ENTRY)};
#undef ENTRY
  table[t->m - 1][t->n > 16](t);
}

static const hn_bf16_ops ops = {.rows = MR,
                                .row_tiles = 1,
                                .parts = 1,
                                .f16 = true,
                                .x1_rate = 1.6,
                                .begin = begin,
                                .end = end,
                                .tile = tile,
                                .store = store,
                                .split = split,
                                .rows_to_steps = rows_to_steps,
                                .copy_to_steps = copy_to_steps};
const struct hn_kernel hn_kernel_gemm_f16_avx512 = {"gemm_f16_avx512", "gemm_bf16", "f16", HN_ISA_AVX512BF16,
                                                    &ops};
