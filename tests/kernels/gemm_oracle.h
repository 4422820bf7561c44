/* What the adapters of the gemm families and conv_oracle.c share: the epilogue of epilogue.h in double. */
#ifndef HN_TESTS_KERNELS_GEMM_ORACLE_H
#define HN_TESTS_KERNELS_GEMM_ORACLE_H

#include <math.h>
#include <stdbool.h>

#include "backends/cpu/kernels/post/epilogue.h"

/* The epilogue in double, with the magnitude that rounding errors scale with. */
static inline double ck_epilogue(uint32_t flags, double acc, double *mag, double bias, double residual,
                                 double lo, double hi, double slope) {
  if (flags & HN_EPI_BIAS) acc += bias, *mag += fabs(bias);
  bool add = flags & HN_EPI_RESIDUAL, after = flags & HN_EPI_RESIDUAL_AFTER;
  if (add) *mag += fabs(residual);
  if (add && !after) acc += residual;
  if (flags & HN_EPI_CLAMP) acc = isnan(acc) ? acc : acc < lo ? lo : acc > hi ? hi : acc;
  if (flags & HN_EPI_LEAKY) acc = acc < 0 ? acc * slope : acc;
  if (add && after) acc += residual;
  return acc;
}

#endif
