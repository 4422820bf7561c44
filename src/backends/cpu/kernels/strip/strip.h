/* Family "strip": many rows of A times one packed panel of B (gemm.h), with the epilogue on the way out. What
 * family "gemm" does for a tile, for as many rows as there are: the loop over tiles lies in the kernel, so
 * that short products (few values of k) do not pay for a call each, and a panel of few columns has tiles of
 * its own. */
#ifndef HN_KERNELS_STRIP_H
#define HN_KERNELS_STRIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/post/epilogue.h"
#include "backends/cpu/kernels/kernel.h"

typedef struct hn_strip {
  _Alignas(64) const float *a; /* aligned as hn_gemm_tile. m rows, row i at a + i * lda */
  ptrdiff_t lda;
  const float *b; /* packed panel, k rows of round_up(n, vw) floats, 64-byte aligned */
  float *c;       /* m x n */
  ptrdiff_t ldc;
  const int32_t *at; /* row i of C at c + at[i]; NULL: at c + i * ldc */
  size_t m, k;
  size_t segment;      /* k is read in pieces of this length (k: one piece); k is a multiple of it */
  ptrdiff_t skip;      /* floats between the end of a piece and the begin of the next, in every row of A */
  uint32_t n;          /* 1..nr; exactly these elements are written */
  uint32_t accumulate; /* add what C holds */
  uint32_t flags;      /* HN_EPI_* */
  float lo, hi, slope;
  const float *bias; /* n values */
  const float *residual;
  ptrdiff_t ldr;
  const float *prefetch, *prefetch_end; /* weights needed soon (NULL: none), pulled into L2 */
  bool far; /* C and the residual lie beyond L1: their lines are asked for as a tile begins. Without `at` */
} hn_strip;

typedef struct hn_strip_ops {
  uint32_t mr, nr, vw; /* those of the tier's gemm kernel, whose panels these are */
  void (*run)(const hn_strip *s);
} hn_strip_ops;

/* The strip kernel of the best tier at or below isa. */
const hn_strip_ops *hn_strip_find(hn_isa isa);

#endif
