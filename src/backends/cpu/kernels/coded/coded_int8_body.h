/* Weights that stay codes in memory times rows of 8-bit numbers: see coded.h. Codes meet them as unsigned
 * bytes, so a block's sum begins with what their offset, the middle code or a zero point, adds too much.
 *
 * The including file defines LANES and `ints`, LANES numbers of 32 bits; set_all, plus, times; widened(p):
 * LANES i8 as ints; reals(ints) as vf; group(p): a vector of bytes; turned(x, bits): codes of 8 bits, or the
 * low nibbles of x, unsigned; high(x): its high nibbles in the low ones' place; dot(sum, u, s). */
#include <string.h>

#include "backends/cpu/kernels/coded/coded.h"
#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec.h"

/* PARTS: vectors of a panel. */
enum { PANEL = HN_CODED_PANEL, GROUP = HN_CODED_GROUP_BYTES, PARTS = PANEL / LANES, MOST = 8 };

static inline __attribute__((unused)) ints group_of(const int8_t *a) {
  int32_t four;
  memcpy(&four, a, sizeof four);
  return set_all(four);
}

/* Four values of a row times u, on top of the sum. With AVX-512 one instruction: compilers broadcast first,
 * and copy sums from register to register. */
static inline __attribute__((always_inline)) void dot_group(ints *sum, ints u, const int8_t *a) {
#if LANES == 16 && !defined(HN_INSTRUMENTED)
  typedef int32_t four __attribute__((may_alias, aligned(1)));
  __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(*sum) : "v"(u), "m"(*(const four *)a));
#else
  *sum = dot(*sum, u, group_of(a));
#endif
}

/* What a block's sum begins with: offset of the codes as bytes, and the zero points, times the numbers' sum.
 */
static inline __attribute__((always_inline)) ints begin_of(int bits, const int8_t *zero, int32_t sum) {
  const ints offset = set_all(bits == 4 ? 8 : 128);
  return times(zero ? plus(offset, widened(zero)) : offset, set_all(-sum));
}

/* Whole vectors are stored without a mask: who reads them next need not wait until they are in the cache. */
static inline __attribute__((always_inline)) void put(const vf *sum, const hn_coded_end *end, size_t n,
                                                      size_t live, float *y) {
  const size_t some = live < LANES ? live : LANES;
  vf v = *sum;
  if (end) {
    if (end->base) v = v_add(v_loadn(end->base + n, some), v);
    y = end->to + n;
  }
  if (some == LANES)
    v_store(y, v);
  else
    v_storen(y, v, some);
}

static inline __attribute__((always_inline)) void tile_of(const hn_coded *w, int rows, int wide, int bits,
                                                          bool zeros, const int8_t *a, const float *a_scale,
                                                          const int32_t *a_sum, const hn_coded_end *end,
                                                          const int32_t *shifted, size_t n, size_t left,
                                                          float *y, ptrdiff_t y_row) {
  const size_t blocks = w->blocks, a_row = blocks * w->block, codes = hn_coded_codes(w),
               panel = hn_coded_panel_bytes(w);
  const uint8_t *at[4];
  const int8_t *zero[4];
  vf total[MOST][4 * PARTS];
  HN_UNROLL for (int v = 0; v < wide; v++) {
    at[v] = w->panels + (n / PANEL + (size_t)v) * panel;
    zero[v] = zeros ? w->zero_codes + (n / PANEL + (size_t)v) * blocks * PANEL : NULL;
  }
  HN_UNROLL for (int r = 0; r < rows; r++) HN_UNROLL for (int v = 0; v < wide * PARTS; v++) total[r][v] =
      v_zero();
  for (size_t b = 0; b < blocks; b++) {
    ints part[MOST][4 * PARTS];
    HN_UNROLL for (int r = 0; r < rows; r++) {
      const int32_t sum = a_sum[(size_t)r * blocks + b];
      HN_UNROLL for (int v = 0; v < wide * PARTS; v++) part[r][v] =
          begin_of(bits, zeros ? zero[v / PARTS] + b * PANEL + v % PARTS * LANES : NULL, sum);
    }
    for (size_t g = PANEL * sizeof(float); g < PANEL * sizeof(float) + codes; g += GROUP) {
      HN_UNROLL for (int v = 0; v < wide * PARTS; v++) {
        const ints x = group(at[v / PARTS] + g + v % PARTS * (GROUP / PARTS)), u = turned(x, bits);
        HN_UNROLL for (int r = 0; r < rows; r++) dot_group(&part[r][v], u, a + (size_t)r * a_row);
        if (bits == 8) continue;
        const ints h = turned(high(x), bits);
        HN_UNROLL for (int r = 0; r < rows; r++) dot_group(&part[r][v], h, a + (size_t)r * a_row + 4);
      }
      a += bits == 4 ? 8 : 4;
    }
    if (end) HN_UNROLL for (int v = 0; v < wide * PARTS; v++) {
        const ints sums = group((const uint8_t *)(const void *)(shifted + n + (size_t)v * LANES));
        HN_UNROLL for (int r = 0; r < rows; r++) part[r][v] =
            plus(part[r][v], times(set_all(end[r].shift), sums));
      }
    HN_UNROLL for (int v = 0; v < wide * PARTS; v++) {
      const vf scale = v_load((const float *)(const void *)at[v / PARTS] + v % PARTS * LANES);
      HN_UNROLL for (int r = 0; r < rows; r++) {
        const vf both = v_mul(scale, v_set1(a_scale[HN_FAULT("coded_order") ? b : (size_t)r * blocks + b]));
        total[r][v] = v_fma(reals(part[r][v]), both, total[r][v]);
      }
    }
    HN_UNROLL for (int v = 0; v < wide; v++) at[v] += PANEL * sizeof(float) + codes;
  }
  HN_UNROLL for (int r = 0; r < rows; r++) HN_UNROLL for (int v = 0; v < wide * PARTS; v++) {
    const size_t from = (size_t)v * LANES, live = left > from ? left - from : 0;
    if (live) put(&total[r][v], end ? &end[r] : NULL, n + from, live, end ? NULL : y + r * y_row + from);
  }
}

#define TILE(NAME, ROWS, WIDE)                                                                               \
  static void NAME(const hn_coded *w, const int8_t *a, const float *scale, const int32_t *sum,               \
                   const hn_coded_end *end, const int32_t *shifted, size_t n, size_t left, float *y,         \
                   ptrdiff_t y_row) {                                                                        \
    if (w->bits == 4 && !w->zero_codes)                                                                      \
      tile_of(w, ROWS, WIDE, 4, false, a, scale, sum, end, shifted, n, left, y, y_row);                      \
    else if (w->bits == 4)                                                                                   \
      tile_of(w, ROWS, WIDE, 4, true, a, scale, sum, end, shifted, n, left, y, y_row);                       \
    else if (!w->zero_codes)                                                                                 \
      tile_of(w, ROWS, WIDE, 8, false, a, scale, sum, end, shifted, n, left, y, y_row);                      \
    else                                                                                                     \
      tile_of(w, ROWS, WIDE, 8, true, a, scale, sum, end, shifted, n, left, y, y_row);                       \
  }

typedef struct tile_kind {
  void (*run)(const hn_coded *w, const int8_t *a, const float *scale, const int32_t *sum,
              const hn_coded_end *end, const int32_t *shifted, size_t n, size_t left, float *y,
              ptrdiff_t y_row);
  size_t rows, wide;
} tile_kind;

/* kinds: of the most rows first; the last takes one row and one panel. */
static inline void product_of(const tile_kind *kinds, const hn_coded *w, const hn_coded_rows *a, size_t rows,
                              size_t from, size_t end, float *y, ptrdiff_t y_row) {
  enum { TOGETHER = 4 * PANEL };
  const size_t a_row = w->blocks * w->block;
  for (size_t n = from, stop; n < end; n = stop) {
    stop = n + TOGETHER < end ? n + TOGETHER : end;
    const size_t vectors = (stop - n + PANEL - 1) / PANEL;
    for (size_t r = 0, m; r < rows; r += m) {
      const tile_kind *t = kinds;
      while (t->rows > rows - r) t++;
      m = t->rows;
      for (size_t v = 0; v < vectors;) {
        const tile_kind *u = t;
        size_t some = m;
        while (u->wide > vectors - v) u++, some = u->rows;
        for (size_t i = 0; i < m; i += some)
          u->run(w, a->a + (r + i) * a_row, a->scale + (r + i) * w->blocks, a->sum + (r + i) * w->blocks,
                 a->end ? a->end + r + i : NULL, a->shifted, n + v * PANEL, stop - n - v * PANEL,
                 a->end ? NULL : y + (ptrdiff_t)(r + i) * y_row + (ptrdiff_t)(n - from + v * PANEL), y_row);
        v += u->wide;
      }
    }
  }
}
