/* Family "strassen": the sums that Strassen's method takes from the operands' quarters and gives to the
 * result's.
 *
 * C = A B in quarters, seven products of half the rows, columns and inner values instead of eight (V.
 * Strassen, Gaussian elimination is not optimal, Numerische Mathematik 13, 1969):
 *
 *   P0 = (A11 + A22)(B11 + B22)   C11 = P0 + P3 - P4 + P6
 *   P1 = (A21 + A22) B11          C12 = P2 + P4
 *   P2 = A11 (B12 - B22)          C21 = P1 + P3
 *   P3 = A22 (B21 - B11)          C22 = P0 - P1 + P2 + P5
 *   P4 = (A11 + A12) B22
 *   P5 = (A21 - A11)(B11 + B12)
 *   P6 = (A12 - A22)(B21 + B22)
 *
 * Over an inner length of K its error is at most
 *
 *   (3 K + 25) K u max|A| max|B|     to first order in u
 *
 * (N. Higham, Accuracy and Stability of Numerical Algorithms, theorem 23.2, with one step above usual
 * products): norm-wise, over all that meets: rows, columns, and the two halves of the inner length, where the
 * usual product is good for each element. So only what is alike meets: hn_strassen_alike. */
#ifndef HN_KERNELS_STRASSEN_H
#define HN_KERNELS_STRASSEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

enum {
  HN_STRASSEN_PRODUCTS = 7,
  HN_STRASSEN_APART = 8,  /* sums of magnitudes that meet differ by no more than this factor, */
  HN_STRASSEN_ABOVE = 16, /* and the largest magnitude is no more than so many times their least mean */
};

/* May two rows of A, or two columns of B, meet? sum: of the magnitudes of k values in each half of either;
 * most: the largest magnitude of all. Not where a half is 0 and another is not, nor where one is not a number
 * or so large that a product of sums could be infinite where the product is not. */
static inline bool hn_strassen_alike(const float sum[4], float most, size_t k) {
  const float large = 1e18f;
  for (int i = 0; i < 4; i++) {
    if (!(sum[i] < large) || !(most * (float)k <= HN_STRASSEN_ABOVE * sum[i])) return false;
    for (int j = 0; j < 4; j++)
      if (!(sum[i] <= HN_STRASSEN_APART * sum[j])) return false;
  }
  return true;
}

/* What a product's factor from B is: a panel, or the sum or the difference of two. */
typedef enum hn_strassen_form { HN_STRASSEN_ALONE, HN_STRASSEN_SUM, HN_STRASSEN_DIFFERENCE } hn_strassen_form;

/* What a product does to a quarter of C: nothing more, be its first term, be added, be taken away. */
typedef enum hn_strassen_to {
  HN_STRASSEN_NONE,
  HN_STRASSEN_FIRST,
  HN_STRASSEN_ADDED,
  HN_STRASSEN_TAKEN
} hn_strassen_to;

/* A tile of one product: m rows and all columns of a panel. */
typedef struct hn_strassen_tile {
  _Alignas(64) const float *a; /* row i at a + i * lda */
  ptrdiff_t lda;
  const float *b, *with; /* packed panels, k rows of nr floats each; with: not read where b is alone */
  size_t k;
  uint32_t m; /* 1..mr */
  hn_strassen_form form;
  hn_strassen_to to[2]; /* what becomes of c[0] and of c[1], rows of nr floats beside each other */
  float *c[2];
  const float *prefetch, *prefetch_end; /* as in hn_gemm_tile */
} hn_strassen_tile;

typedef struct hn_strassen_ops {
  uint32_t mr, nr; /* of a tile, those of family "gemm" */
  /* Two rows of A that meet, k values of each half of either: top is A11's and, `half` on, A12's; bottom
   * (NULL: the rows are an odd number, all zeros) A21's and A22's. to[p]: the row of P<p>'s factor. */
  void (*rows)(const float *top, const float *bottom, ptrdiff_t half, size_t k,
               float *const to[HN_STRASSEN_PRODUCTS]);
  /* The sum of the magnitudes of k values, and the largest of them (not told where one is not a number). */
  float (*size)(const float *x, size_t k, float *most);
  /* The same of each column of a packed panel of k rows of nr floats. */
  void (*columns)(const float *panel, size_t k, float *sum, float *most);
  void (*tile)(const hn_strassen_tile *t);
  /* c = (held ? c : 0) + sum: m rows of nr floats beside each other become rows at distance ldc. */
  void (*give)(const float *sum, size_t m, float *c, ptrdiff_t ldc, bool held);
} hn_strassen_ops;

/* The best table at or below a tier. */
static inline const hn_strassen_ops *hn_strassen_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("strassen", "f32", isa);
  return k ? (const hn_strassen_ops *)k->ops : NULL;
}

#endif
