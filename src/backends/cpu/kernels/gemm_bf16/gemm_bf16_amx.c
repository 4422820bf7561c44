/* Intel AMX: blocks of 2 x 2 tiles of up to 16 x 16 results, 16 cycles for 8192 multiply-adds. */
#include <string.h>

#include "backends/cpu/kernels/amx_tiles.h"
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

/* Tiles 0..3 are sums (row tile, column tile), 4 and 5 hold A, 6 and 7 B. */
static void begin(uint32_t rows) { hn_tiles_open(rows); }
static void end(void) { _tile_release(); }

#define ZERO(i) _tile_zero(i)
#define LOAD_A(i, p) _tile_loadd(i, (p), a_row)
#define LOAD_B(i, p) _tile_loadd(i, (p), 64)
#define LOAD_C(i, p) _tile_loadd(i, (p), HN_BF16_PANEL * 4)
#define STORE_C(i, p) _tile_stored(i, (p), HN_BF16_PANEL * 4)

/* mt, nt: row and column tiles; constants after inlining, as is x3. */
static inline __attribute__((always_inline)) void tile_fixed(const hn_bf16_tile *t, const int mt,
                                                             const int nt, const bool x3) {
  const ptrdiff_t a_row = t->row * 2;
  const uint16_t *b = t->b;
  const ptrdiff_t second = (ptrdiff_t)t->rows * t->row, lo = t->lo;
  const char *pf = t->prefetch;
  const size_t lines = (t->prefetch_bytes + 63) / 64,
               share = t->steps ? (lines + t->steps - 1) / t->steps : 0;
  const char *pf_end = pf + t->prefetch_bytes;
  float *c = t->c, *c2 = c + t->rows * HN_BF16_PANEL;
  if (t->accumulate && !HN_FAULT("bf16_no_accumulate")) {
    LOAD_C(0, c);
    if (nt > 1) LOAD_C(1, c + 16);
    if (mt > 1) LOAD_C(2, c2);
    if (mt > 1 && nt > 1) LOAD_C(3, c2 + 16);
  } else {
    ZERO(0);
    if (nt > 1) ZERO(1);
    if (mt > 1) ZERO(2);
    if (mt > 1 && nt > 1) ZERO(3);
  }
  for (size_t s = 0; s < t->steps; s++) {
    const uint16_t *a = t->a + t->step[s];
    if (x3) { /* low A x high B, high A x high B, high A x low B: each tile is loaded once */
      LOAD_A(4, a + lo);
      LOAD_B(6, b);
      _tile_dpbf16ps(0, 4, 6);
      if (nt > 1) {
        LOAD_B(7, b + HN_BF16_TILE);
        _tile_dpbf16ps(1, 4, 7);
      }
      if (mt > 1) {
        LOAD_A(5, a + second + lo);
        _tile_dpbf16ps(2, 5, 6);
        if (nt > 1) _tile_dpbf16ps(3, 5, 7);
      }
      b += nt * HN_BF16_TILE;
    } else {
      LOAD_B(6, b);
      if (nt > 1) LOAD_B(7, b + HN_BF16_TILE);
    }
    LOAD_A(4, a);
    _tile_dpbf16ps(0, 4, 6);
    if (nt > 1) _tile_dpbf16ps(1, 4, 7);
    if (mt > 1) {
      LOAD_A(5, a + second);
      _tile_dpbf16ps(2, 5, 6);
      if (nt > 1) _tile_dpbf16ps(3, 5, 7);
    }
    if (x3) {
      LOAD_B(6, b);
      _tile_dpbf16ps(0, 4, 6);
      if (mt > 1) _tile_dpbf16ps(2, 5, 6);
      if (nt > 1) {
        LOAD_B(7, b + HN_BF16_TILE);
        _tile_dpbf16ps(1, 4, 7);
        if (mt > 1) _tile_dpbf16ps(3, 5, 7);
      }
    }
    b += nt * HN_BF16_TILE;
    for (size_t i = 0; i < share && pf < pf_end; i++, pf += 64) __builtin_prefetch(pf, 0, 2);
  }
  STORE_C(0, c);
  if (nt > 1) STORE_C(1, c + 16);
  if (mt > 1) STORE_C(2, c2);
  if (mt > 1 && nt > 1) STORE_C(3, c2 + 16);
}

static void tile(const hn_bf16_tile *t) {
  hn_bf16_tile short_one;
  if (HN_FAULT("bf16_last_step") && t->steps > 0) {
    short_one = *t;
    short_one.steps--;
    t = &short_one;
  }
  const bool two = t->m > t->rows, wide = t->n > 16;
  if (t->x3) {
    if (two && wide)
      tile_fixed(t, 2, 2, true);
    else if (two)
      tile_fixed(t, 2, 1, true);
    else if (wide)
      tile_fixed(t, 1, 2, true);
    else
      tile_fixed(t, 1, 1, true);
  } else {
    if (two && wide)
      tile_fixed(t, 2, 2, false);
    else if (two)
      tile_fixed(t, 2, 1, false);
    else if (wide)
      tile_fixed(t, 1, 2, false);
    else
      tile_fixed(t, 1, 1, false);
  }
}

static const hn_bf16_ops ops = {.rows = 16,
                                .row_tiles = 2,
                                .x3 = true,
                                .x1_rate = 16,
                                .begin = begin,
                                .end = end,
                                .tile = tile,
                                .store = store,
                                .split = split,
                                .rows_to_steps = rows_to_steps,
                                .copy_to_steps = copy_to_steps,
                                .pack_tile = pack_tile};
const struct hn_kernel hn_kernel_gemm_bf16_amx = {"gemm_bf16_amx", "gemm_bf16", "bf16", HN_ISA_AMX, &ops};
