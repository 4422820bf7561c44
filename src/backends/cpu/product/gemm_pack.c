#include "backends/cpu/kernels/gemm/gemm.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/transpose/transpose.h"
#include "base/fault.h"

/* Weights of a file lie at any alignment. */
static inline float load(const float *p) {
  float x;
  memcpy(&x, p, sizeof x);
  return x;
}

/* Four columns whose k lies contiguous become four floats in each of four rows: a quarter of the stores. */
typedef float quad __attribute__((vector_size(16)));

static inline quad load_quad(const float *p) {
  quad x;
  memcpy(&x, p, sizeof x);
  return x;
}

static inline void turn(const float *column, ptrdiff_t sn, float *d, size_t w) {
  quad a = load_quad(column), b = load_quad(column + sn), c = load_quad(column + 2 * sn),
       e = load_quad(column + 3 * sn);
  quad ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7),
       ce0 = __builtin_shufflevector(c, e, 0, 4, 1, 5), ce1 = __builtin_shufflevector(c, e, 2, 6, 3, 7);
  quad row[4] = {__builtin_shufflevector(ab0, ce0, 0, 1, 4, 5), __builtin_shufflevector(ab0, ce0, 2, 3, 6, 7),
                 __builtin_shufflevector(ab1, ce1, 0, 1, 4, 5),
                 __builtin_shufflevector(ab1, ce1, 2, 3, 6, 7)};
  for (size_t i = 0; i < 4; i++) memcpy(d + i * w, &row[i], sizeof row[i]);
}

/* k values of `live` columns at distance sn, contiguous in k, into rows at distance w. */
static void turn_block(const float *b, ptrdiff_t sn, size_t k, size_t live, size_t w, float *dst) {
  size_t j = 0;
  for (; j + 4 <= live; j += 4) {
    const float *column = b + (ptrdiff_t)j * sn;
    size_t i = 0;
    for (; i + 4 <= k; i += 4) turn(column + i, sn, dst + i * w + j, w);
    for (; i < k; i++)
      for (size_t c = 0; c < 4; c++) dst[i * w + j + c] = load(column + (ptrdiff_t)c * sn + (ptrdiff_t)i);
  }
  for (; j < live; j++)
    for (size_t i = 0; i < k; i++) dst[i * w + j] = load(b + (ptrdiff_t)j * sn + (ptrdiff_t)i);
}

/* The transpose of whole tiles, which reads any alignment; NULL: this processor has none. */
static hn_transpose_fn tiles(void) {
  static hn_transpose_fn _Atomic found;
  hn_transpose_fn f = atomic_load_explicit(&found, memory_order_relaxed);
  if (f || hn_cpu()->isa < HN_ISA_AVX2) return f;
  const struct hn_transpose_ops *o = hn_transpose_find(hn_cpu()->isa);
  f = o ? o->matrix[2] : NULL;
  atomic_store_explicit(&found, f, memory_order_relaxed);
  return f;
}

void hn_gemm_turn(const float *b, ptrdiff_t sn, size_t k, size_t n, size_t w, float *dst) {
  enum { TILE = 16 }; /* of the widest; what is smaller goes element by element there */
  const hn_transpose_fn turn_tiles = n >= TILE && k >= TILE ? tiles() : NULL;
  if (turn_tiles)
    turn_tiles(dst, (ptrdiff_t)w, b, sn, n, k);
  else
    turn_block(b, sn, k, n, w, dst);
}

/* Rows of B contiguous: copy w floats at a time. */
static void pack_rows(const float *b, ptrdiff_t sk, size_t k, size_t live, size_t w, float *dst) {
  enum { USUAL = 32 }; /* a width that needs no call */
  for (size_t i = 0; i < k; i++, b += sk, dst += w) {
    if (live == USUAL)
      memcpy(dst, b, USUAL * sizeof(float));
    else
      memcpy(dst, b, live * sizeof(float));
    if (live < w) memset(dst + live, 0, (w - live) * sizeof(float));
  }
}

/* Any strides, in square blocks so that both sides stay in L1. */
static void pack_strided(const float *b, ptrdiff_t sk, ptrdiff_t sn, size_t k, size_t live, size_t w,
                         float *dst) {
  enum { BLOCK = 16 };
  for (size_t k0 = 0; k0 < k; k0 += BLOCK) {
    size_t k1 = k0 + BLOCK < k ? k0 + BLOCK : k;
    if (sk == 1) hn_gemm_turn(b + k0, sn, k1 - k0, live, w, dst + k0 * w);
    for (size_t j = 0; j < live && sk != 1; j++) {
      const float *col = b + (ptrdiff_t)j * sn;
      for (size_t i = k0; i < k1; i++) dst[i * w + j] = load(col + (ptrdiff_t)i * sk);
    }
    for (size_t i = k0; i < k1 && live < w; i++) memset(dst + i * w + live, 0, (w - live) * sizeof(float));
  }
}

void hn_gemm_pack_b(const hn_gemm_ops *o, const float *b, ptrdiff_t sk, ptrdiff_t sn, size_t k, size_t n,
                    size_t n0, size_t n1, float *dst) {
  /* Rows that are contiguous are read from end to end, a few at a time. */
  enum { ROWS = 8 };
  const size_t together = sn == 1 && k > ROWS ? ROWS : k;
  for (size_t k0 = 0; k0 < k; k0 += together) {
    const size_t rows = k - k0 < together ? k - k0 : together;
    for (size_t c = n0; c < n1; c += o->nr) {
      size_t w = hn_gemm_panel_width(o, n, c), live = n - c < w ? n - c : w;
      if (HN_FAULT("gemm_pack_last_column") && live > 1) live--;
      if (sn == 1)
        pack_rows(b + (ptrdiff_t)k0 * sk + c, sk, rows, live, w, dst + c * k + k0 * w);
      else
        pack_strided(b + (ptrdiff_t)c * sn, sk, sn, k, live, w, dst + c * k);
    }
  }
}

/* Taps side by side behind each other for each input channel, as in convolutions' weights: [rows][of] of
 * `live` columns are turned in L1, and their rows taken to their places, `to` apart from tap to tap. */
enum { TURNED_ROWS = 256, TURNED_COLUMNS = 64 };

static void pack_taps(const float *w, int64_t s_co, int64_t of, int64_t rows, const int32_t *tap_list,
                      int64_t n_taps, size_t live, size_t width, int64_t to, float *dst) {
  _Alignas(64) float turned[TURNED_ROWS * TURNED_COLUMNS];
  hn_gemm_turn(w, s_co, (size_t)(rows * of), live, width, turned);
  for (int64_t t = 0; t < n_taps; t++) {
    const int64_t tap = tap_list ? tap_list[t] : t;
    pack_rows(turned + tap * (int64_t)width, of * (int64_t)width, (size_t)rows, live, width, dst + t * to);
  }
}

void hn_gemm_pack_weights(const hn_gemm_ops *o, const float *w, int64_t s_co, int64_t s_ci, int64_t s_tap,
                          int64_t cin, const int32_t *tap_list, int64_t n_taps, int64_t cout, float *dst) {
  enum { BLOCK = 16 };
  size_t n = (size_t)cout, k = (size_t)(n_taps * cin);
  for (size_t c = 0; c < n; c += o->nr) {
    size_t width = hn_gemm_panel_width(o, n, c), live = n - c < width ? n - c : width;
    float *panel = dst + c * k;
    if (live < width) memset(panel, 0, width * k * sizeof *panel);
    /* Source runs along ci and taps, destination along columns: blocks of ci of which both sides stay in L1.
     */
    /* What lies between a column's rows is read, too: only where all of it is the column's own. */
    const bool side_by_side = s_ci > 1 && s_tap == 1 && s_co >= cin * s_ci && s_ci * BLOCK <= TURNED_ROWS &&
                              width <= TURNED_COLUMNS && (tap_list || n_taps <= s_ci);
    for (int64_t i0 = 0; i0 < cin; i0 += BLOCK) {
      int64_t rows = cin - i0 < BLOCK ? cin - i0 : BLOCK;
      if (side_by_side) {
        pack_taps(w + (int64_t)c * s_co + i0 * s_ci, s_co, s_ci, rows, tap_list, n_taps, live, width,
                  cin * (int64_t)width, panel + (size_t)i0 * width);
        continue;
      }
      for (int64_t t = 0; t < n_taps && s_ci == 1; t++)
        hn_gemm_turn(w + (int64_t)c * s_co + (tap_list ? tap_list[t] : t) * s_tap + i0, s_co, (size_t)rows,
                     live, width, panel + (size_t)(t * cin + i0) * width);
      for (size_t j = 0; j < live && s_ci != 1; j++) {
        const float *column = w + (int64_t)(c + j) * s_co + i0 * s_ci;
        for (int64_t t = 0; t < n_taps; t++) {
          const float *tap = column + (tap_list ? tap_list[t] : t) * s_tap;
          float *d = panel + (size_t)(t * cin + i0) * width + j;
          for (int64_t i = 0; i < rows; i++) d[(size_t)i * width] = load(tap + i * s_ci);
        }
      }
    }
  }
}

const hn_gemm_ops *hn_gemm_find(hn_isa isa) {
  static const hn_gemm_ops *_Atomic found[HN_ISA_COUNT];
  if ((unsigned)isa >= HN_ISA_COUNT) return NULL;
  const hn_gemm_ops *o = atomic_load_explicit(&found[isa], memory_order_relaxed);
  if (o) return o;
  const struct hn_kernel *k = hn_kernel_find("gemm", "f32", isa);
  o = k ? k->ops : NULL;
  atomic_store_explicit(&found[isa], o, memory_order_relaxed);
  return o;
}
