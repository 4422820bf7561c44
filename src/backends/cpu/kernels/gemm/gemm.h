/* Family "gemm": C tile = A rows x packed B panel (+ C), with the epilogue on the way out.
 *
 * Packed B (hn_gemm_pack_b): column panels of `nr` columns, each panel K rows of nr floats, one after the
 * other, so the panel of column n0 starts at n0 * K.  The last panel is only round_up(tail, vw) wide, filled
 * up with zeros. A is read where it lies: row-major with any row stride (an NHWC activation is such a
 * matrix). */
#ifndef HN_KERNELS_GEMM_H
#define HN_KERNELS_GEMM_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/post/epilogue.h"
#include "backends/cpu/kernels/kernel.h"

typedef struct hn_gemm_tile {
  /* m rows, row i at a + i * lda. Written anew for every tile, in pairs of words: of one that lies across two
   * pages each store takes as long as a third of a tile. */
  _Alignas(64) const float *a;
  ptrdiff_t lda;
  const float *b; /* packed panel, k rows of round_up(n, vw) floats, 64-byte aligned */
  float *c;       /* m x n, row i at c + i * ldc */
  ptrdiff_t ldc;
  size_t k;
  size_t segment; /* k is read in pieces of this length (k: one piece); k is a multiple of it */
  ptrdiff_t skip; /* floats between the end of a piece and the begin of the next, in every row of A */
  size_t turns;   /* after so many pieces `jump` takes the place of skip (0: never) */
  ptrdiff_t jump;
  uint32_t m, n;       /* 1..mr, 1..nr; exactly these elements are written */
  uint32_t accumulate; /* add what C holds (a later K block) */
  uint32_t flags;      /* HN_EPI_*; 0 on every K block but the last */
  float lo, hi, slope; /* as in hn_epilogue */
  const float *bias;   /* n values */
  const float *residual;
  ptrdiff_t ldr;
  const float *prefetch, *prefetch_end; /* weights needed soon (NULL: none): at most two cache lines a k step
                                           are pulled into L2 */
} hn_gemm_tile;

enum { HN_GEMM_ROWS = 16 }; /* no kernel's tiles have more */

typedef struct hn_gemm_ops {
  uint32_t mr, nr; /* largest tile */
  uint32_t vw;     /* floats in a vector: panel widths are multiples of it */
  void (*tile)(const hn_gemm_tile *t);
} hn_gemm_ops;

/* Width of the panel that starts at column n0 of n. */
static inline size_t hn_gemm_panel_width(const hn_gemm_ops *o, size_t n, size_t n0) {
  size_t w = n - n0;
  if (w >= o->nr) return o->nr;
  return (w + o->vw - 1) / o->vw * o->vw;
}

/* Floats of packed B of k x n. */
static inline size_t hn_gemm_packed_size(const hn_gemm_ops *o, size_t n, size_t k) {
  size_t full = n / o->nr * o->nr;
  return (full + (n > full ? hn_gemm_panel_width(o, n, full) : 0)) * k;
}

/* Packs columns [n0, n1) (n0 a multiple of nr) of B into dst, the packed form of the whole B.  B's element
 * (k, n) is b[k * sk + n * sn], so a transposed or strided B needs no copy. */
void hn_gemm_pack_b(const hn_gemm_ops *o, const float *b, ptrdiff_t sk, ptrdiff_t sn, size_t k, size_t n,
                    size_t n0, size_t n1, float *dst);

/* Packs convolution weights: element (tap, ci, co) is w[co * s_co + ci * s_ci + tap * s_tap]; row order of
 * the packed matrix is tap by tap, ci fastest.  tap_list (NULL: all) names the n_taps source taps to take. */
void hn_gemm_pack_weights(const hn_gemm_ops *o, const float *w, int64_t s_co, int64_t s_ci, int64_t s_tap,
                          int64_t cin, const int32_t *tap_list, int64_t n_taps, int64_t cout, float *dst);

/* dst[i * w + j] = b[i + j * sn] for i < k, j < n: columns that are contiguous, at any alignment, become
 * rows.
 */
void hn_gemm_turn(const float *b, ptrdiff_t sn, size_t k, size_t n, size_t w, float *dst);

/* The gemm kernel of the best tier at or below isa; cheap enough for every run. */
const hn_gemm_ops *hn_gemm_find(hn_isa isa);

#endif
