/* Normalisation kernels. Means and variances are taken in two passes over data in cache, each with several
 * partial sums; variance is the biased one (divided by n). */
#ifndef HN_KERNELS_NORM_H
#define HN_KERNELS_NORM_H

#include <stdbool.h>
#include <stddef.h>

#include "backends/cpu/kernels/kernel.h"

/* One row of layer normalisation: h = x + residual + bias, y = (h - mean) / sqrt(var + eps) * gamma + beta.
 * rms: mean is taken as 0 and var as the mean square. */
struct hn_norm_row {
  const float *x;
  const float *residual; /* n floats or NULL */
  const float *bias;     /* n floats or NULL: added to h, too */
  const float *gamma;    /* n floats or NULL (1) */
  const float *beta;     /* n floats or NULL (0) */
  float *y;              /* may be x or residual */
  float *h;              /* n floats that receive h, or NULL; may be x or residual */
  size_t n;
  float eps;
  bool rms;
  float mean, inv_std; /* results */
};

/* y = x / (bias + alpha * sum of the squares of `taps` neighbours) ^ beta over n contiguous values; the
 * neighbours of value i lie at from + i, `step` apart. bias > 0, alpha > 0: the sum has a logarithm. */
struct hn_norm_neighbours {
  const float *x, *from;
  float *y;
  ptrdiff_t step;
  size_t taps, n;
  float alpha, beta, bias;
};

struct hn_norm_ops {
  void (*row)(struct hn_norm_row *r);
  /* `rows` rows that lie one behind the other in x, residual, y and h, with the same bias, gamma and beta.
   * mean and inv_std receive a number a row, or are NULL; what r holds of them is not set. */
  void (*rows)(const struct hn_norm_row *r, size_t rows, float *mean, float *inv_std);
  /* Mean and variance of n contiguous elements (n > 0). */
  void (*stats)(const float *x, size_t n, float *mean, float *var);
  /* y = (x - mean) * scale + shift over n contiguous elements; y may be x. */
  void (*affine)(float *y, const float *x, size_t n, float mean, float scale, float shift);
  /* The same three along the rows of a matrix: element (r, c) at [r * ld + c]; a mean, scale, shift per
   * column. mean == NULL: 0. */
  void (*column_stats)(const float *x, size_t rows, size_t cols, ptrdiff_t ld, float *mean, float *var);
  void (*column_affine)(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, size_t rows, size_t cols,
                        const float *mean, const float *scale, const float *shift);
  void (*neighbours)(const struct hn_norm_neighbours *r);
};

/* The best table at or below a tier. */
static inline const struct hn_norm_ops *hn_norm_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("norm", "f32", isa);
  return k ? (const struct hn_norm_ops *)k->ops : NULL;
}

#endif
