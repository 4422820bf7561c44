/* Of coded_body.h: weights of 16 bits, which are floats. */
#ifndef HN_KERNELS_CODED_HALVES_H
#define HN_KERNELS_CODED_HALVES_H

/* Columns n and on at k = 0; those of the next k lie PANEL elements behind them. */
static inline const uint16_t *halves_at(const hn_coded *w, size_t n) {
  return (const uint16_t *)(const void *)(w->panels + n / PANEL * hn_coded_panel_bytes(w)) + n % PANEL;
}

static inline __attribute__((always_inline)) vf half_of(const uint16_t *p, bool bf16) {
  return bf16 ? v_load_bf16(p) : v_load_f16(p);
}

/* As tile_of, of f16 or bf16. */
static inline __attribute__((always_inline)) void halves_tile(const hn_coded *w, int rows, int wide,
                                                              bool bf16, const float *a, size_t n,
                                                              size_t left, float *y, ptrdiff_t y_row) {
  enum { MOST = 8, TOGETHER = 2, AHEAD = 64 }; /* two k are a line; so many come from memory meanwhile */
  const size_t depth = w->blocks * w->block;   /* a multiple of 8 */
  const uint16_t *at[4];
  vf total[MOST][4];
  HN_UNROLL for (int v = 0; v < wide; v++) at[v] = halves_at(w, n + (size_t)v * VEC_W);
  HN_UNROLL for (int r = 0; r < rows; r++) HN_UNROLL for (int v = 0; v < wide; v++) total[r][v] = v_zero();
  for (size_t k = 0; k < depth; k += TOGETHER) {
    HN_UNROLL for (int v = 0; v < wide; v++) __builtin_prefetch(at[v] + (k + AHEAD) * PANEL);
    HN_UNROLL for (size_t i = 0; i < TOGETHER; i++) {
      HN_UNROLL for (int v = 0; v < wide; v++) {
        const vf x = half_of(at[v] + (k + (HN_FAULT("coded_halves") ? 0 : i)) * PANEL, bf16);
        HN_UNROLL for (int r = 0; r < rows; r++) total[r][v] =
            v_fma(x, v_set1(a[(size_t)r * depth + k + i]), total[r][v]);
      }
    }
  }
  HN_UNROLL for (int r = 0; r < rows; r++) HN_UNROLL for (int v = 0; v < wide; v++) {
    const size_t from = (size_t)v * VEC_W, live = left > from ? left - from : 0;
    if (live) v_storen(y + r * y_row + from, total[r][v], live < VEC_W ? live : VEC_W);
  }
}

/* As widen_of: a vector of columns, plain or in pairs of k. */
static inline void halves_widen(const hn_coded *w, size_t n, size_t k0, size_t k1, float *dst, size_t row,
                                bool pairs, size_t step) {
  const uint16_t *p = halves_at(w, n);
  const bool bf16 = w->bf16;
  for (size_t k = k0; k < k1; k += 2) {
    const vf even = half_of(p + k * PANEL, bf16), odd = half_of(p + (k + 1) * PANEL, bf16);
    const size_t in = k - k0;
    if (pairs) {
      store_pairs(dst + in / 32 * step + in % 32 * PANEL, even, odd);
    } else {
      v_store(dst + in * row, even);
      v_store(dst + (in + 1) * row, odd);
    }
  }
}

#endif
