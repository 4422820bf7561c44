/* Intel AMX: blocks of 2 x 2 tiles of up to 16 x 16 results, 16 cycles for 8192 multiply-adds. */
#include <string.h>

#include "backends/cpu/kernels/amx_tiles.h"
#include "backends/cpu/kernels/gemm_bf16/gemm_bf16.h"
#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec.h"

#include "backends/cpu/kernels/gemm_bf16/amx_store.inc"

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

/* mt, nt: row and column tiles; constants after inlining, as are the parts. */
#define INLINE static inline __attribute__((always_inline))

/* Tiles of A in 4 and 5, of B in 6 and 7: of one part each. */
INLINE void load_a(const uint16_t *a, ptrdiff_t second, ptrdiff_t a_row, const int mt) {
  LOAD_A(4, a);
  if (mt > 1) LOAD_A(5, a + second);
}
INLINE void load_b(const uint16_t *b, const int nt) {
  LOAD_B(6, b);
  if (nt > 1) LOAD_B(7, b + HN_BF16_TILE);
}
INLINE void multiply(const int mt, const int nt) {
  _tile_dpbf16ps(0, 4, 6);
  if (nt > 1) _tile_dpbf16ps(1, 4, 7);
  if (mt > 1) _tile_dpbf16ps(2, 5, 6);
  if (mt > 1 && nt > 1) _tile_dpbf16ps(3, 5, 7);
}

/* Results of an earlier block on their way to memory: vectors work while tiles do. */
typedef struct leaving {
  const hn_bf16_store *next, *end;
  rows_fn rows;
  uint32_t row, each; /* of next; rows a step */
} leaving;

INLINE leaving leaving_of(const hn_bf16_tile *t) {
  leaving l = {.next = t->before,
               .end = t->before + t->n_before - (HN_FAULT("bf16_before_last") && t->n_before)};
  uint32_t all = 0;
  for (const hn_bf16_store *s = l.next; s < l.end; s++) all += s->m;
  if (all) l.rows = rows_of(l.next);
  l.each = all && t->steps ? (all + (uint32_t)t->steps - 1) / (uint32_t)t->steps : 0;
  return l;
}

INLINE void leave(leaving *l, uint32_t count) {
  while (count && l->next < l->end) {
    const uint32_t left = l->next->m - l->row, now = count < left ? count : left;
    l->rows(l->next, l->row, l->row + now);
    count -= now, l->row += now;
    if (now == left) l->next++, l->row = 0;
  }
}

/* `each` groups of weights become parts: vectors work while tiles do. */
INLINE void part_ahead(const hn_bf16_ahead *w, uint32_t *at, uint32_t each) {
  for (uint32_t i = 0; i < each && *at < w->last; i++, ++*at) {
    const uint32_t value = *at * 32, step = w->values == 1024 ? value / 1024 : value / 512;
    split32(w->from + value, 32, w->to + 2 * step * w->values + value, (ptrdiff_t)w->values, 3);
  }
}

INLINE void tile_fixed(const hn_bf16_tile *t, const int mt, const int nt, const int parts) {
  const ptrdiff_t a_row = t->row * 2;
  const uint16_t *b = t->b;
  const ptrdiff_t second = (ptrdiff_t)t->rows * t->row, lo = t->lo, part_b = nt * HN_BF16_TILE;
  const char *pf = t->prefetch;
  const size_t lines = (t->prefetch_bytes + 63) / 64,
               share = lines && t->steps ? (lines + t->steps - 1) / t->steps : 0;
  const char *pf_end = pf + t->prefetch_bytes;
  uint32_t group = t->ahead.first + (HN_FAULT("bf16_ahead_last") && t->ahead.last > t->ahead.first);
  const uint32_t turns = 6 * (uint32_t)t->steps,
                 each = parts == 3 && turns ? (t->ahead.last - group + turns - 1) / turns : 0;
  float *c = t->c, *c2 = c + t->rows * HN_BF16_PANEL;
  leaving before = leaving_of(t);
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
  for (size_t s = 0; s < t->steps; s++, b += parts * part_b) {
    const uint16_t *a = t->a + t->step[s];
    /* From part to part one side changes, so that few tiles are loaded again. */
    if (parts == 1) {
      load_b(b, nt);
      load_a(a, second, a_row, mt);
    } else if (parts == 2) { /* 2 * 1, 1 * 1, 1 * 2 */
      load_a(a + lo, second, a_row, mt);
      load_b(b, nt);
      multiply(mt, nt);
      load_a(a, second, a_row, mt);
      multiply(mt, nt);
      load_b(b + part_b, nt);
    } else { /* 3 * 1, 2 * 1, 2 * 2, 1 * 2, 1 * 3, 1 * 1 */
      load_a(a + 2 * lo, second, a_row, mt);
      load_b(b, nt);
      multiply(mt, nt);
      part_ahead(&t->ahead, &group, each);
      load_a(a + lo, second, a_row, mt);
      multiply(mt, nt);
      part_ahead(&t->ahead, &group, each);
      load_b(b + part_b, nt);
      multiply(mt, nt);
      part_ahead(&t->ahead, &group, each);
      load_a(a, second, a_row, mt);
      multiply(mt, nt);
      part_ahead(&t->ahead, &group, each);
      load_b(b + 2 * part_b, nt);
      multiply(mt, nt);
      part_ahead(&t->ahead, &group, each);
      load_b(b, nt);
    }
    multiply(mt, nt);
    if (parts == 3) part_ahead(&t->ahead, &group, each);
    leave(&before, before.each);
    for (size_t i = 0; i < share && pf < pf_end; i++, pf += 64) __builtin_prefetch(pf, 0, 2);
  }
  leave(&before, UINT32_MAX);
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
#define FORM(parts)                                                                                          \
  {                                                                                                          \
    if (two && wide)                                                                                         \
      tile_fixed(t, 2, 2, parts);                                                                            \
    else if (two)                                                                                            \
      tile_fixed(t, 2, 1, parts);                                                                            \
    else if (wide)                                                                                           \
      tile_fixed(t, 1, 2, parts);                                                                            \
    else                                                                                                     \
      tile_fixed(t, 1, 1, parts);                                                                            \
  }
  const bool two = t->m > t->rows, wide = t->n > 16;
  if (t->parts == 3)
    FORM(3)
  else if (t->parts == 2)
    FORM(2)
  else
    FORM(1)
#undef FORM
}

static bool finite_sums(const float *sums, uint32_t m, uint32_t n) {
  enum { NOT_FINITE = 0x01 | 0x08 | 0x10 | 0x80 }; /* NaN, quiet and signalling, and both infinities */
  const __mmask16 low = (__mmask16)(n < 16 ? (1u << n) - 1 : 0xffff),
                  high = (__mmask16)(((1ull << n) - 1) >> 16);
  __mmask16 found = 0;
  for (uint32_t i = 0; i < m; i++, sums += HN_BF16_PANEL)
    found |= _mm512_mask_fpclass_ps_mask(low, _mm512_maskz_loadu_ps(low, sums), NOT_FINITE) |
             _mm512_mask_fpclass_ps_mask(high, _mm512_maskz_loadu_ps(high, sums + 16), NOT_FINITE);
  return found == 0;
}

static const hn_bf16_ops ops = {.rows = 16,
                                .row_tiles = 2,
                                .parts = 3,
                                .meanwhile = true,
                                .x1_rate = 16,
                                .begin = begin,
                                .end = end,
                                .tile = tile,
                                .store = store,
                                .split = split,
                                .rows_to_steps = rows_to_steps,
                                .copy_to_steps = copy_to_steps,
                                .pack_tile = pack_tile,
                                .finite = finite_sums};
const struct hn_kernel hn_kernel_gemm_bf16_amx = {"gemm_bf16_amx", "gemm_bf16", "bf16", HN_ISA_AMX, &ops};
