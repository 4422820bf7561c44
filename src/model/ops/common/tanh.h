/* The hyperbolic tangent of f64 for loops. */
#ifndef HN_MODEL_OPS_TANH_H
#define HN_MODEL_OPS_TANH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Without branches, so that a loop over it is one over vectors: near 0 a rational function, beyond it
 * 1 - 2 / (exp(2 |x|) + 1), both with the coefficients of Moshier's Cephes library. */
static inline double hn_tanh(double x) {
  const double z = x * x, a = fabs(x), twice = 2 * (a < 20 ? a : 20); /* it is 1 from there on */
  const double p = (-9.64399179425052238628e-1 * z - 9.92877231001918586564e1) * z - 1.61468768441708447952e3,
               q = ((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z +
                   4.84406305325125486048e3;
  const double magic = 0x1.8p52, whole = twice * 1.44269504088896340736 + magic, n = whole - magic;
  const double r = (twice - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6, rr = r * r;
  const double up = r * ((1.26177193074810590878e-4 * rr + 3.02994407707441961300e-2) * rr + 1),
               down = ((3.00198505138664455042e-6 * rr + 2.52448340349684104192e-3) * rr +
                       2.27265548208155028766e-1) *
                          rr +
                      2;
  uint64_t bits;
  double power;
  memcpy(&bits, &whole, sizeof bits);
  bits = (bits + 1023) << 52; /* 2^n: the number stands in the lowest bits */
  memcpy(&power, &bits, sizeof power);
  const double e = power * (1 + 2 * up / (down - up));
  const double near = x + x * z * (p / q), far = 1 - 2 / (e + 1);
  return copysign(a < 0.625 || a != a ? near : far, x);
}

#endif
