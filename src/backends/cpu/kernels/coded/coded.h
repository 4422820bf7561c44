/* Family "coded": matrices of K x N weights that stay codes of 4 or 8 bits in memory, in blocks along K with
 * a scale and a zero point for each column. A weight is (code - zero) scale.
 *
 * Sixteen columns are a panel, whose codes are widened without a shuffle, as columns are lanes: block by
 * block sixteen scales in f32, then groups of 64 bytes, four a column. A group has 8 values of k at 4 bits,
 * in byte b those of k + b (low) and k + 4 + b (high), and 4 at 8 bits, as products of bytes read them. Codes
 * are kept less the middle one (8, 128), as signed numbers; so are zero points, which lie apart. What is
 * beyond the last column has scale 0.
 *
 * Weights of 16 bits are no codes but floats, f16 or bf16: one block of all of K without scales and zero
 * points, whose panels have sixteen columns of each k side by side. */
#ifndef HN_KERNELS_CODED_H
#define HN_KERNELS_CODED_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

enum { HN_CODED_PANEL = 16, HN_CODED_GROUP_BYTES = 64 };

typedef struct hn_coded {
  const uint8_t *panels; /* 64-byte aligned */
  /* [panels][blocks][16]; both NULL: the middle code */
  const int8_t *zero_codes;
  const float *zero_floats;
  size_t blocks, block; /* k of a block: a multiple of 8 */
  uint32_t bits;        /* 4, 8 or 16 */
  uint32_t bf16;        /* of 16 bits: bf16, not f16 */
} hn_coded;

static inline size_t hn_coded_codes(const hn_coded *w) { return HN_CODED_PANEL * w->block * w->bits / 8; }
static inline size_t hn_coded_block_bytes(const hn_coded *w) {
  return (w->bits == 16 ? 0 : HN_CODED_PANEL * sizeof(float)) + hn_coded_codes(w);
}
static inline size_t hn_coded_panel_bytes(const hn_coded *w) { return w->blocks * hn_coded_block_bytes(w); }
static inline int hn_coded_has_zeros(const hn_coded *w) { return w->zero_codes || w->zero_floats; }

/* Where the product of a row of one block goes in y's place: to[n] = base[n] + scale * (numbers . codes of
 * column n
 * + shift * shifted[n]), the sum in i32. */
typedef struct hn_coded_end {
  float *to;
  const float *base; /* NULL: 0; or to */
  int32_t shift;
} hn_coded_end;

/* Rows of A as 8-bit numbers: a scale for each block. */
typedef struct hn_coded_rows {
  const int8_t *a; /* blocks * block a row */
  const float *scale;
  const int32_t *sum;      /* of a block's numbers */
  const hn_coded_end *end; /* of the rows; NULL: they go to y */
  const int32_t *shifted;  /* of whole panels; read where there are ends */
} hn_coded_rows;

typedef struct hn_coded_ops {
  /* Where there are zero points: sums[b] of a row's blocks, which product wants. */
  void (*sums)(const hn_coded *w, const float *a, float *sums);
  /* y[r][n - from] = a[r] . column n, for columns [from, end), from a multiple of 16. Rows of A have blocks *
   * block values; sums: `blocks` a row. */
  void (*product)(const hn_coded *w, const float *a, const float *sums, size_t rows, size_t from, size_t end,
                  float *y, ptrdiff_t y_row);
  /* dst[(k - k0) * row + j] = weight (k, n + j), k in [k0, k1), multiples of 8, and j < columns, a multiple
   * of the tier's lanes that n is one of, too. */
  void (*widen)(const hn_coded *w, size_t n, size_t columns, size_t k0, size_t k1, float *dst, size_t row);
  /* A panel's values of k in [k0, k1), multiples of 32, as products of bf16 parts keep them: of 32 values
   * [16 pairs of k][16 columns][2], `step` floats apart. What is beyond the last block is 0. */
  void (*widen_pairs)(const hn_coded *w, size_t n, size_t k0, size_t k1, float *dst, size_t step);
} hn_coded_ops;

typedef struct hn_coded_int8_ops {
  uint32_t rows, lanes; /* of the largest tile; of a vector of i32 */
  /* One row of blocks * block values as 8-bit numbers. */
  void (*narrow)(const hn_coded *w, const float *a, int8_t *to, float *scale, int32_t *sum);
  void (*product)(const hn_coded *w, const hn_coded_rows *a, size_t rows, size_t from, size_t end, float *y,
                  ptrdiff_t y_row);
} hn_coded_int8_ops;

/* The best table at or below a tier. */
static inline const hn_coded_ops *hn_coded_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("coded", "f32", isa);
  return k ? (const hn_coded_ops *)k->ops : NULL;
}
static inline const hn_coded_int8_ops *hn_coded_int8_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("coded", "int8", isa);
  return k ? (const hn_coded_int8_ops *)k->ops : NULL;
}

#endif
