/* The unary functions that networks use as activations, once for elementwise kernels and epilogues. al and be
 * are the two immediates of hone_pw_op's formulas. */
#ifndef HN_VEC_ACT_H
#define HN_VEC_ACT_H

#include <hone/plugin.h>

#include "backends/cpu/kernels/vec/vec_math.h"

static inline vf v_leaky(vf x, vf slope) { return v_sel(v_lt(x, v_zero()), v_mul(x, slope), x); }

/* clip(slope x + shift, 0, 1) */
static inline vf v_ramp(vf x, vf slope, vf shift) {
  return v_min_number(v_set1(1.0f), v_max_number(v_zero(), v_fma(x, slope, shift)));
}

/* (1 + tanh u) / 2 = sigmoid(2u), which keeps the negative tail's relative accuracy. */
static inline vf v_gelu_tanh(vf x) {
  const vf cubic = v_fma(v_mul(v_set1(0.044715f), v_mul(x, x)), x, x);
  return v_mul(x, v_sigmoid(v_mul(v_set1(0x1.988454p+0f), cubic)));
}

static inline vf v_elu(vf x, vf al) { return v_sel(v_lt(x, v_zero()), v_mul(al, v_expm1(x)), x); }

#endif
