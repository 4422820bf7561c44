/* The exponential function of f64 for loops. */
#ifndef HN_MODEL_OPS_EXP_H
#define HN_MODEL_OPS_EXP_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Without branches, so that a loop over it is one over vectors: 2^n times a rational function of what is
 * left, with the coefficients of Moshier's Cephes library; within 2 units of the last place, denormal results
 * within their own. Beyond both ends it is infinity and 0, NaN stays. */
static inline double hn_exp(double x) {
  const double low = x > -746 ? x : -746, a = x != x ? x : low < 710 ? low : 710;
  const double magic = 0x1.8p52, whole = a * 1.44269504088896340736 + magic, n = whole - magic;
  const double r = (a - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6, rr = r * r;
  const double up = r * ((1.26177193074810590878e-4 * rr + 3.02994407707441961300e-2) * rr +
                         9.99999999999999999910e-1),
               down = ((3.00198505138664455042e-6 * rr + 2.52448340349684104192e-3) * rr +
                       2.27265548208155028766e-1) *
                          rr +
                      2;
  /* In two factors, each of which is a normal number: n may be beyond their exponents. */
  uint64_t bits, half, rest;
  double first, second;
  memcpy(&bits, &whole, sizeof bits);
  bits -= 0x4338000000000000u; /* n, as a whole number */
  half = (uint64_t)((int32_t)bits >> 1), rest = bits - half;
  half = (half + 1023) << 52, rest = (rest + 1023) << 52;
  memcpy(&first, &half, sizeof first), memcpy(&second, &rest, sizeof second);
  return (1 + 2 * up / (down - up)) * first * second;
}

#endif
