/* Family "post": what is left of a step's epilogue when the kernel's registers have done theirs (epilogue.h),
 * on the block that was just written, in one pass: a value is loaded once, goes through all operations and is
 * stored once. */
#ifndef HN_KERNELS_POST_H
#define HN_KERNELS_POST_H

#include <hone/plugin.h>

#include "backends/cpu/kernels/kernel.h"

/* In place over n contiguous floats.  p: the activation's two parameters (alpha, beta). */
typedef void (*hn_act_fn)(float *x, size_t n, const float *p);

typedef enum hn_post_kind { HN_POST_ACT, HN_POST_BIAS, HN_POST_SCALE, HN_POST_ADD, HN_POST_MUL } hn_post_kind;

/* y = act(y), y + v, y * v. */
typedef struct hn_post_op {
  hn_post_kind kind;
  hone_pw_op op; /* ACT: done in registers where the kernel knows it, else by act */
  hn_act_fn act;
  float p[2];
  const float *v;  /* row r's values begin at v + r * pitch */
  ptrdiff_t pitch; /* 0: the same for all rows (BIAS, SCALE) */
} hn_post_op;

struct hn_post_ops {
  /* `rows` rows of n floats, `pitch` apart, go through n_ops operations. */
  void (*rows)(const hn_post_op *op, uint32_t n_ops, float *y, ptrdiff_t pitch, size_t rows, size_t n);
};

static inline const struct hn_post_ops *hn_post_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("post", "f32", isa);
  return k ? k->ops : NULL;
}

#endif
