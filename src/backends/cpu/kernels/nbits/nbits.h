/* Family "nbits": matrices whose columns are codes of 2, 4 or 8 bits, low bits first, in blocks with a scale
 * and a zero point each; a block is at least 4 bytes. A code's value is (code - zero) scale. */
#ifndef HN_KERNELS_NBITS_H
#define HN_KERNELS_NBITS_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

typedef struct hn_nbits_matrix {
  const uint8_t *codes; /* column n begins at n * blocks * block_bytes */
  const float *scales;  /* [columns, blocks] */
  /* Zero points: codes, `zero_row` bytes a column; or floats like scales; or, both NULL, the middle code. */
  const uint8_t *zeros;
  size_t zero_row;
  const float *zero_floats;
  size_t blocks, block_bytes;
  uint32_t bits;
} hn_nbits_matrix;

typedef struct hn_nbits_ops {
  /* Rows of A, k values each, as product reads them: packed floats a row. */
  size_t (*packed)(const hn_nbits_matrix *w);
  void (*pack)(const hn_nbits_matrix *w, const float *a, size_t k, float *dst);
  /* y[r][n] = a[r] . column n + bias[n] (NULL: 0), for columns [from, end); y_row: distance of rows. */
  void (*product)(const hn_nbits_matrix *w, const float *packed, size_t rows, size_t from, size_t end,
                  const float *bias, float *y, ptrdiff_t y_row);
  /* dst[i] = ((code i ^ flip) - zero) scale, n codes. */
  void (*decode)(float *dst, const uint8_t *codes, size_t n, uint32_t bits, uint32_t flip, float zero,
                 float scale);
} hn_nbits_ops;

/* The best table at or below a tier. */
static inline const hn_nbits_ops *hn_nbits_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("nbits", "f32", isa);
  return k ? (const hn_nbits_ops *)k->ops : NULL;
}

#endif
