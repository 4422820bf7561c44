/* Matrix products of f64, and of integers of 32 and 64 bits, which wrap. */
#ifndef HN_KERNELS_WIDE_H
#define HN_KERNELS_WIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

typedef enum hn_wide_type { HN_WIDE_F64, HN_WIDE_W32, HN_WIDE_W64, HN_WIDE_TYPES } hn_wide_type;

struct hn_wide_product {
  int32_t rows, columns, lanes; /* of a tile; of a vector, of which a tile's columns are some */
  /* c[m][vectors * lanes] = a[k][rows] turned, times as many of b[k][columns], or that added to it; m <=
   * rows. Rows of c lie ldc elements apart. No operand need be aligned beyond its elements. */
  void (*tile)(void *c, int64_t ldc, const void *a, const void *b, int32_t m, int32_t vectors, int64_t k,
               bool add);
  /* c[m] = a[m][k] x[k]; rows of a lie lda elements apart, elements of c ldc. */
  void (*dots)(void *c, int64_t ldc, const void *a, int64_t lda, const void *x, int64_t m, int64_t k);
};

struct hn_wide_ops {
  struct hn_wide_product of[HN_WIDE_TYPES];
};

/* The best table at or below a tier. */
static inline const struct hn_wide_ops *hn_wide_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("wide", "products", isa);
  return k ? (const struct hn_wide_ops *)k->ops : NULL;
}

#endif
