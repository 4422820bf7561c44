/* One number to its code, as QuantizeLinear defines it: the quotient rounded once, then rounded to an integer (ties to
 * even). The quotient is the reciprocal's product, twice mended by what is left over, which makes it the rounded one
 * (Markstein). The integer stands in the low bits of a sum with 1.5 x 2^23: conversions have a pipe of their own, that is
 * four times narrower. NaN becomes the lowest code. */
#ifndef HN_QUANTISE_CUH
#define HN_QUANTISE_CUH

#include "prelude.cuh"
#include "quantise_args.h"

HN_FN i32 hn_quantise(float from, const hn_quantise_args *c) {
  const float x = fminf(fmaxf(from, -c->limit), c->limit);
  float q = __fmul_rn(x, c->inverse);
  q = __fmaf_rn(__fmaf_rn(-q, c->scale, x), c->inverse, q);
  q = __fmaf_rn(__fmaf_rn(-q, c->scale, x), c->inverse, q);
  q = fminf(fmaxf(q, c->lowest), c->highest);
  return (i32)hn_bits(__fadd_rn(q, 12582912.0f)) - 0x4b400000 + c->zero;
}

#endif
