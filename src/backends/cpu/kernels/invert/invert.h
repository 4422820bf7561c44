/* Inverses of matrices, in doubles. */
#ifndef HN_KERNELS_INVERT_H
#define HN_KERNELS_INVERT_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

enum { HN_INVERT_BLOCK = 8 }; /* columns that are eliminated together */

struct hn_invert_ops {
  /* y[n][n] becomes the inverse of x[n][n], by elimination with row exchanges; `pitch` is n, and so much more
   * that whole blocks are full. work[n + HN_INVERT_BLOCK][pitch], 64-byte aligned; order[n]. What has no
   * inverse becomes infinite or NaN. */
  void (*matrix)(float *y, const float *x, size_t n, size_t pitch, double *work, int32_t *order);
};

/* The best table at or below a tier. */
static inline const struct hn_invert_ops *hn_invert_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("invert", "f64", isa);
  return k ? (const struct hn_invert_ops *)k->ops : NULL;
}

#endif
