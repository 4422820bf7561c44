/* One number to its code, as QuantizeLinear defines it: the quotient rounded once, then rounded to an integer (ties to
 * even). The quotient is the reciprocal's product, twice mended by what is left over, which makes it the rounded one
 * (Markstein). The integer stands in the low bits of a sum with 1.5 x 2^23: conversions have a pipe of their own, that is
 * four times narrower. NaN becomes the lowest code. */
#ifndef HN_QUANTISE_CUH
#define HN_QUANTISE_CUH

#include "prelude.cuh"
#include "quantise_args.h"

/* Added to a number below 2^22, this rounds it to the nearest integer, which then stands in the low bits. */
#define HN_ROUNDER 12582912.0f
#define HN_ROUNDER_BITS 0x4b400000

/* x / scale, rounded once; inverse: 1 / scale, rounded. */
HN_FN float hn_quotient_rn(float x, float scale, float inverse) {
  float q = __fmul_rn(x, inverse);
  q = __fmaf_rn(__fmaf_rn(-q, scale, x), inverse, q);
  return __fmaf_rn(__fmaf_rn(-q, scale, x), inverse, q);
}

HN_FN i32 hn_quantise(float from, const hn_quantise_args *c) {
  const float x = fminf(fmaxf(from, -c->limit), c->limit);
  const float q = fminf(fmaxf(hn_quotient_rn(x, c->scale, c->inverse), c->lowest), c->highest);
  return (i32)hn_bits(__fadd_rn(q, HN_ROUNDER)) - HN_ROUNDER_BITS + c->zero;
}

#endif
