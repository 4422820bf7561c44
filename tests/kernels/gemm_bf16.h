/* What the two parts of the family "gemm_bf16" share: bounds of errors, and memory. */
#ifndef HN_TESTS_KERNELS_GEMM_BF16_H
#define HN_TESTS_KERNELS_GEMM_BF16_H

#include <math.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/product/bf16_driver.h"
#include "check.h"

/* The whole through the convolution driver, gemm_bf16_conv.c. */
void ck_bf16_convs(ck *c, const hn_bf16_ops *o);
void ck_bf16_bench(ck *c, const struct hn_kernel *k);

/* Largest error of a sum of k products; sum, mag_a, mag_b: sums of |a b|, |a|, |b|.  u = 2^-8: what
 * one, two and three parts leave out of both factors (gemm_bf16.h).  Products and sums are rounded to f32, of
 * several parts as many times more; parts and results below 2^-126 count as 0. */
static inline double ck_bf16x_bound(uint32_t parts, size_t k, double sum, double mag_a, double mag_b) {
  const double u = 0x1p-8, products = hn_bf16_products(parts);
  const double rounding = parts == 3   ? 2 * u * u * u * (1 + 2 * u)
                          : parts == 2 ? 3 * u * u * (1 + 2 * u)
                                       : 2 * u + u * u;
  const double tiny = 0x1p-126 * (2 * products * (double)k + 4 + mag_a + mag_b);
  return sum * rounding + (2 * products * (double)k + 8) * CK_EPS * sum * (1 + 1e-3) + tiny;
}

/* The same in f16, u = 2^-11: both factors are rounded, and sums of at most HN_F16_RUN products at every
 * step. What lies below 2^-14 is wrong by 2^-25. Second orders are within the factor. */
static inline double ck_f16_bound(size_t k, double sum, double mag_a, double mag_b) {
  const double u = 0x1p-11, run = k < HN_F16_RUN ? (double)k : HN_F16_RUN;
  return sum * (2 * u + run * u + (double)k * CK_EPS) * 1.05 + 0x1p-25 * (2 * (double)k + mag_a + mag_b + 1);
}

static inline double ck_bf16_bound(const hn_bf16_ops *o, uint32_t parts, size_t k, double sum, double mag_a,
                                   double mag_b) {
  return o->f16 ? ck_f16_bound(k, sum, mag_a, mag_b) : ck_bf16x_bound(parts, k, sum, mag_a, mag_b);
}

/* Products of CK_WIDE are beyond f16. */
static inline bool ck_bf16_in_range(const hn_bf16_ops *o, enum ck_fill fill) {
  return !o->f16 || fill != CK_WIDE;
}

/* Inf operands may give NaN where the sum of the products is infinite. */
static inline void ck_near_or_nan(ck *c, size_t index, float got, double want, double bound, double sum) {
  if (isinf(sum) && isnan(got)) want = NAN;
  ck_near(c, index, got, want, bound);
}

static inline uint16_t *ck_alloc16(ck *c, size_t n) {
  return (uint16_t *)(void *)ck_alloc(c, (n + 1) / 2, 0);
}

/* What a stored result of 16 bits may differ by from one of f32, and where it is infinite. */
static inline double ck_bf16_stored(const hn_bf16_ops *o, float got, double want, double *bound) {
  const double u = o->f16 ? 0x1p-11 : 0x1p-8, most = o->f16 ? 65504 : 0x1.fep127;
  *bound += u * (fabs(want) + *bound) + (o->f16 ? 0x1p-24 : 0x1p-126);
  return isinf(got) && fabs(want) + *bound >= most && (got > 0) == (want > 0) ? got : want;
}

/* A processor of the tier may lack AVX512-FP16. */
static inline bool ck_bf16_has_instructions(ck *c, const hn_bf16_ops *o) {
  if (o->f16 && !hn_cpu()->fp16) ck_lacks(c, "AVX512-FP16");
  return !o->f16 || hn_cpu()->fp16;
}

#endif
