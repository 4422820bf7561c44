/* Intel AMX: blocks of 2 x 2 tiles of 16 x 16 sums, 16 cycles for 16384 multiply-adds. */
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/kernels/amx_tiles.h"
#include "backends/cpu/kernels/gemm_int8/gemm_int8.h"
#include "backends/cpu/kernels/template.h"

#include "backends/cpu/kernels/gemm_int8/int8_operand.inc"
#include "backends/cpu/kernels/gemm_int8/int8_store.inc"
#include "backends/cpu/kernels/gemm_int8/int8_sums512.inc"

enum { MR = 32, NR = INT8_NR, STEP = 64, TILE = 16 };

/* Tiles 0..3 are sums (row tile, column tile), 4 and 5 hold A, 6 and 7 B. */
static void begin(void) { hn_tiles_open(TILE); }
static void end(void) { _tile_release(); }

/* mt, nt: row and column tiles; constants after inlining.  sums: NR values from row to row. */
static inline __attribute__((always_inline)) void products(const hn_int8_tile *t, const int mt, const int nt,
                                                           int32_t *sums) {
  const ptrdiff_t lda = t->lda, block = HN_INT8_BLOCK * (ptrdiff_t)t->k * t->segments,
                  ahead_step = t->ahead_step * (STEP / 4);
  const int8_t *b = t->b, *ahead = t->ahead;
  if (HN_FAULT("int8_last_k") && t->k == STEP && t->n > 1) b += block; /* one step alone: the wrong weights */
  /* Every row begins with the bias. */
  _tile_loadd(0, t->bias, 0);
  if (nt > 1) _tile_loadd(1, t->bias + HN_INT8_BLOCK, 0);
  if (mt > 1) _tile_loadd(2, t->bias, 0);
  if (mt > 1 && nt > 1) _tile_loadd(3, t->bias + HN_INT8_BLOCK, 0);
  for (uint32_t s = 0; s < t->segments; s++) {
    const uint8_t *a = t->a + (s ? t->segment_at[s] : 0), *a2 = a + TILE * lda;
    size_t k = t->k;
    if (HN_FAULT("int8_last_k") && k > STEP) k -= STEP;
    for (; k; k -= STEP, a += STEP, a2 += STEP, b += STEP * HN_INT8_BLOCK) {
      _tile_loadd(6, b, 64);
      _tile_loadd(4, a, lda);
      _tile_dpbusd(0, 4, 6);
      if (nt > 1) {
        _tile_loadd(7, b + block, 64);
        _tile_dpbusd(1, 4, 7);
      }
      if (mt > 1) {
        _tile_loadd(5, a2, lda);
        _tile_dpbusd(2, 5, 6);
        if (nt > 1) _tile_dpbusd(3, 5, 7);
      }
      if (!ahead) continue;
      for (ptrdiff_t i = 0; i < ahead_step; i += 64) _mm_prefetch((const char *)(ahead + i), _MM_HINT_T1);
      ahead += ahead_step;
    }
  }
  _tile_stored(0, sums, NR * 4);
  if (nt > 1) _tile_stored(1, sums + HN_INT8_BLOCK, NR * 4);
  if (mt > 1) _tile_stored(2, sums + TILE * NR, NR * 4);
  if (mt > 1 && nt > 1) _tile_stored(3, sums + TILE * NR + HN_INT8_BLOCK, NR * 4);
}

static void tile(const hn_int8_tile *t) {
  _Alignas(64) int32_t sums[MR * NR];
  const bool two = t->m > TILE, wide = t->n > HN_INT8_BLOCK;
  if (two && wide)
    products(t, 2, 2, sums);
  else if (two)
    products(t, 2, 1, sums);
  else if (wide)
    products(t, 1, 2, sums);
  else
    products(t, 1, 1, sums);
  int8_store(t, sums);
}

static const hn_int8_ops ops = {.mr = MR,
                                .nr = NR,
                                .k_step = STEP,
                                .whole_rows = TILE,
                                .ahead_outside = true,
                                .rate = 32,
                                .begin = begin,
                                .end = end,
                                .tile = tile,
                                .sum_rows = sum_rows,
                                .operand = operand};
const struct hn_kernel hn_kernel_gemm_int8_amx = {"gemm_int8_amx", "gemm_int8", "u8s8", HN_ISA_AMX, &ops};
