/* What seven products of quarters need beside the products (product/strassen_driver.h): sums of A's quarters,
 * and the results' quarters from four of the products. */
#ifndef HN_KERNELS_STRASSEN_H
#define HN_KERNELS_STRASSEN_H

#include <stddef.h>

#include "backends/cpu/kernels/kernel.h"

enum { HN_STRASSEN_SUMS = 7 };

struct hn_strassen_ops {
  /* A row of A's upper half and one of its lower half (NULL: of zeros), [A11 A12] and [A21 A22] of `half`
   * numbers each, become a row of A11, S1 = A21 + A22, S2 = S1 - A11, S3 = A11 - A21, A12, S4 = A12 - S2 and
   * A22. most: the largest magnitude of either row, NaN where a number is none. */
  void (*split)(float *const to[HN_STRASSEN_SUMS], const float *upper, const float *lower, size_t half,
                float most[2]);
  /* n columns of a row of C11 = p0, C12 = p0 + p2 + p1, C21 = p0 + p2 + p3 and C22 = C21 + p1; the last two
   * may be NULL. */
  void (*join)(float *const c[4], const float *const p[4], size_t n);
};

/* The best table at or below a tier. */
static inline const struct hn_strassen_ops *hn_strassen_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("strassen", "f32", isa);
  return k ? (const struct hn_strassen_ops *)k->ops : NULL;
}

#endif
