/* What happens to a value between the accumulator and memory, shared by the gemm, conv and depthwise kernels.
 *   y = post(act(acc + bias[column] + residual))   or, with residual_after,   y = act(acc + bias[column]) + residual
 * Clamp and leaky-relu run in registers; every other activation is a function over a contiguous row that was
 * written a moment ago and is still in L1.  NaN passes through every activation. */
#ifndef HN_BACKENDS_CPU_EPILOGUE_H
#define HN_BACKENDS_CPU_EPILOGUE_H

#include <stddef.h>

/* In place over n contiguous floats.  p: the activation's parameters (alpha, beta...), may be NULL when it has none. */
typedef void (*hn_act_fn)(float *x, size_t n, const float *p);

enum hn_epi_flags {
  HN_EPI_BIAS = 1,           /* bias[n] */
  HN_EPI_RESIDUAL = 2,       /* residual, same shape as the output, own row stride */
  HN_EPI_CLAMP = 4,          /* min(hi, max(lo, x)); relu is lo = 0, hi = inf */
  HN_EPI_LEAKY = 8,          /* x >= 0 ? x : slope * x; excludes HN_EPI_CLAMP */
  HN_EPI_RESIDUAL_AFTER = 16 /* with HN_EPI_RESIDUAL: add it after the activation */
};

typedef struct hn_epilogue {
  unsigned flags;
  float lo, hi, slope;
  const float *bias;
  const float *residual; /* first element, row r at residual + r * ldr */
  ptrdiff_t ldr;
  hn_act_fn act;         /* NULL, or applied by the driver after the flags above (before a residual_after) */
  float p[4];
} hn_epilogue;

#endif
