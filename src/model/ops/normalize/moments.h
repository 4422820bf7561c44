/* Mean, variance and mean square in double, with the range of the type that an operator's definition computes
 * them in: what overflows there is infinite here, too, and what vanishes there is zero. */
#ifndef HN_MODEL_OPS_MOMENTS_H
#define HN_MODEL_OPS_MOMENTS_H

#include "model/ops/common/op.h"

/* The type of a normalisation's first stage: its stash_type (f32), or x's own where that is wider. */
static inline hone_dtype hn_stash(const hone_node *node, hone_dtype x) {
  const hone_dtype stash = (hone_dtype)hone_node_int(node, "stash_type", HONE_DTYPE_F32);
  if (x == HONE_DTYPE_F64 || stash == HONE_DTYPE_F64) return HONE_DTYPE_F64;
  return x == HONE_DTYPE_F32 ? x : stash;
}

/* v, unless the type cannot hold it: then infinite or zero. Its precision stays double's. */
static inline double hn_in_range(double v, hone_dtype type) {
  const float f = (float)v;
  const float held = type == HONE_DTYPE_F16    ? hn_f16_to_f32(hn_f32_to_f16(f))
                     : type == HONE_DTYPE_BF16 ? hn_bf16_to_f32(hn_f32_to_bf16(f))
                                               : f;
  return type != HONE_DTYPE_F64 && (isinf(held) || held == 0) ? (double)held : v;
}

static inline double hn_mean(const double *x, int64_t n, hone_dtype type) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i];
  return n > 0 ? hn_in_range(sum, type) / (double)n : 0;
}

/* mean of (x - mean)^2 */
static inline double hn_variance(const double *x, int64_t n, double mean, hone_dtype type) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += (x[i] - mean) * (x[i] - mean);
  return n > 0 ? hn_in_range(sum, type) / (double)n : 0;
}

/* mean of x^2 */
static inline double hn_mean_square(const double *x, int64_t n, hone_dtype type) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
  return hn_in_range(sum, type) / (double)n;
}

#endif
