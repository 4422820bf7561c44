/* What happens to a value between the accumulator and memory, shared by the gemm, conv and depthwise kernels.
 *   y = act(acc + bias[column] + residual)   or, with residual_after,   y = act(acc + bias[column]) +
 * residual Clamp and leaky-relu run in registers.  Whatever else a step asks for follows as a list of row
 * operations that the driver has a kernel of family "post" apply to the block it has just written, while it
 * is still in L1.  NaN passes through every activation. */
#ifndef HN_CPU_KERNELS_POST_EPILOGUE_H
#define HN_CPU_KERNELS_POST_EPILOGUE_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/post/post.h"
#include "optimize/step/pixels.h"

enum hn_epi_flags {
  HN_EPI_BIAS = 1,           /* bias[n] */
  HN_EPI_RESIDUAL = 2,       /* residual, same shape as the output, own strides */
  HN_EPI_CLAMP = 4,          /* min(hi, max(lo, x)); relu is lo = 0, hi = inf */
  HN_EPI_LEAKY = 8,          /* x >= 0 ? x : slope * x; excludes HN_EPI_CLAMP */
  HN_EPI_RESIDUAL_AFTER = 16 /* with HN_EPI_RESIDUAL: add it after the activation */
};

/* One row operation: x = act(x), x + v[column], x * v[column], x + t, x * t. */
typedef struct hn_post {
  hn_post_kind kind;
  hone_pw_op op; /* ACT: its name (HONE_PW_NONE: known by its function alone) */
  hn_act_fn act;
  float p[2];
  const float *v;         /* per column (BIAS, SCALE) or tensor (ADD, MUL) */
  const uint16_t *narrow; /* the tensor where it lies in the epilogue's type of 16 bits; v is NULL then */
  hn_view view;           /* of the tensor */
} hn_post;

#define HN_MAX_POST 7 /* a step's epilogue and the anchor's own bias */

typedef struct hn_epilogue {
  uint32_t flags;
  float lo, hi, slope;
  const float *bias;
  const float *residual;
  const uint16_t *narrow_residual; /* instead of residual, in the epilogue's type of 16 bits */
  hn_view residual_view;
  uint32_t n_post;
  hn_post post[HN_MAX_POST];
  const struct hn_post_ops *rows;                       /* the kernel that applies them */
  void (*widen)(float *dst, const void *src, size_t n); /* of that type; NULL: no tensor is narrow */
} hn_epilogue;

/* Applies the row operations to n columns from column c0 on of `count` pixels beside each other, `pitch`
 * floats apart, of which (b, z, row, x) is the first and lies at y. */
void hn_epilogue_post_pixels(const hn_epilogue *e, float *y, int64_t pitch, int64_t count, size_t c0,
                             size_t n, int64_t b, int64_t z, int64_t row, int64_t x);

#endif
