/* Elementwise kernels over contiguous spans: the instructions of pointwise programs and the activations of
 * epilogues.
 *
 * All functions are exact at +-inf, NaN and +-0 in the sense of the formula that hone_pw_op documents
 * (silu(-inf) is -inf * 0 = NaN, as it is when spelled out); NaN propagates through MIN, MAX, CLIP and RELU.
 * Rounding: see vec/vec_math.h for the elementary functions; POW is libm's. Spans may have any length and
 * alignment; dst may be the same array as an operand, but must not overlap one otherwise. */
#ifndef HN_KERNELS_POINTWISE_H
#define HN_KERNELS_POINTWISE_H

#include <hone/plugin.h>

#include "backends/cpu/kernels/post/epilogue.h"
#include "backends/cpu/kernels/kernel.h"

/* dst[i] = op(a[i], b[i], c[i]) for i < n. Bit k of `uniform` says that operand k (a, b, c) is one float for
 * all i. Operands that the operation does not have are ignored. p: {alpha, beta}. */
typedef void (*hn_pw_fn)(float *dst, const float *a, const float *b, const float *c, size_t n,
                         unsigned uniform, const float *p);

struct hn_pw_ops {
  hn_pw_fn fn[HONE_PW_COUNT];   /* NULL for NONE, LOAD, STORE, CONST */
  hn_act_fn act[HONE_PW_COUNT]; /* the unary ones, in place */
  /* Rows one behind the other: dst[r * n + i] = src[r * pitch + i], or src[r * pitch] where not `dense`, for
   * i < n. */
  void (*rows)(float *dst, const float *src, size_t rows, size_t n, ptrdiff_t pitch, bool dense);
  /* bool to 1 or 0, and back: whether it is not 0. */
  void (*from_bool)(float *dst, const uint8_t *src, size_t n);
  void (*to_bool)(uint8_t *dst, const float *src, size_t n);
};

/* Number of operands of an instruction: 0 for LOAD and CONST, 1 for STORE and unary functions... */
unsigned hn_pw_arity(hone_pw_op op);

/* Cycles that one vector of an instruction takes, about, where its operands lie in L1. For cost models. */
double hn_pw_cycles(hone_pw_op op);

/* The best table at or below a tier. */
const struct hn_pw_ops *hn_pw_find(hn_isa isa);

/* The activation in place; NULL when op is no unary function. p: {alpha, beta}, may be NULL where it takes
 * none. */
hn_act_fn hn_act_find(hone_pw_op op, hn_isa isa);

#endif
