/* The elementwise functions of hone_pw_op: hn_fn_<name>(x, alpha, beta), hn_fn2_<name>(x, y) and
 * hn_fn3_where(x, y, z), <name> being the enumerator in lower case.
 *
 * Same formulas as the CPU's kernels: exact at infinities, NaN and zeros in the sense of what hone_pw_op
 * documents; NaN passes through MIN, MAX, CLIP and RELU; comparisons give 1 or 0. Errors stay within a few
 * units in the last place of f32. With HN_FAST_MATH (defined by whoever stores results in 16 bits) exp and
 * division are the approximate ones, whose error of about 2^-20 does not show after the rounding. They take what is
 * below 2^-126 for zero: without that each would be three to five instructions in place of one or two. */
#ifndef HN_MATH_CUH
#define HN_MATH_CUH

#include "prelude.cuh"

#if defined(HN_FAST_MATH) && !defined(HN_EMULATED)
HN_FN float hn_exp2_near(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
HN_FN float hn_reciprocal_near(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
HN_FN float hn_exp(float x) { return hn_exp2_near(x * 0x1.715476p+0f); }
HN_FN float hn_div(float x, float y) { return x * hn_reciprocal_near(y); }
/* 1 - 2 / (exp(2|x|) + 1) loses small arguments: those take four terms of the series. */
HN_FN float hn_tanh(float x) {
  float a = fabsf(x), t = x * x, e = hn_exp(-2.0f * a);
  float large = copysignf(hn_div(1.0f - e, 1.0f + e), x);
  float small = x * (1.0f + t * (-0x1.555556p-2f + t * (0x1.111112p-3f + t * -0x1.ba1ba2p-5f)));
  return a < 0.25f ? small : large;
}
#else
HN_FN float hn_exp(float x) { return expf(x); }
HN_FN float hn_div(float x, float y) { return x / y; }
HN_FN float hn_tanh(float x) { return tanhf(x); }
#endif

/* Through exp(-|x|): nothing overflows, and small results keep their relative accuracy. */
HN_FN float hn_sigmoid(float x) {
  float e = hn_exp(-fabsf(x));
  return hn_div(x < 0.0f ? e : 1.0f, 1.0f + e);
}

/* ---- unary */
HN_FN float hn_fn_not(float x, float alpha, float beta) { (void)alpha, (void)beta; return x == 0.0f ? 1.0f : 0.0f; }
HN_FN float hn_fn_neg(float x, float alpha, float beta) { (void)alpha, (void)beta; return -x; }
HN_FN float hn_fn_abs(float x, float alpha, float beta) { (void)alpha, (void)beta; return fabsf(x); }
HN_FN float hn_fn_sqrt(float x, float alpha, float beta) { (void)alpha, (void)beta; return sqrtf(x); }
HN_FN float hn_fn_reciprocal(float x, float alpha, float beta) { (void)alpha, (void)beta; return 1.0f / x; }
HN_FN float hn_fn_exp(float x, float alpha, float beta) { (void)alpha, (void)beta; return hn_exp(x); }
HN_FN float hn_fn_log(float x, float alpha, float beta) { (void)alpha, (void)beta; return logf(x); }
HN_FN float hn_fn_erf(float x, float alpha, float beta) { (void)alpha, (void)beta; return erff(x); }
HN_FN float hn_fn_tanh(float x, float alpha, float beta) { (void)alpha, (void)beta; return hn_tanh(x); }
HN_FN float hn_fn_sigmoid(float x, float alpha, float beta) { (void)alpha, (void)beta; return hn_sigmoid(x); }
HN_FN float hn_fn_floor(float x, float alpha, float beta) { (void)alpha, (void)beta; return floorf(x); }
HN_FN float hn_fn_ceil(float x, float alpha, float beta) { (void)alpha, (void)beta; return ceilf(x); }
HN_FN float hn_fn_round(float x, float alpha, float beta) { (void)alpha, (void)beta; return rintf(x); } /* to even */
HN_FN float hn_fn_sign(float x, float alpha, float beta) {
  (void)alpha, (void)beta;
  return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x != x ? x : 0.0f;
}
HN_FN float hn_fn_relu(float x, float alpha, float beta) { (void)alpha, (void)beta; return hn_max_nan(x, 0.0f); }
HN_FN float hn_fn_clip(float x, float alpha, float beta) { return hn_min_nan(hn_max_nan(x, alpha), beta); }
HN_FN float hn_fn_leakyrelu(float x, float alpha, float beta) { (void)beta; return x < 0.0f ? x * alpha : x; }
HN_FN float hn_fn_elu(float x, float alpha, float beta) { (void)beta; return x < 0.0f ? alpha * expm1f(x) : x; }
HN_FN float hn_fn_selu(float x, float alpha, float beta) { return beta * (x <= 0.0f ? alpha * expm1f(x) : x); }
HN_FN float hn_fn_celu(float x, float alpha, float beta) {
  (void)beta;
  return hn_max_nan(x, 0.0f) + hn_min_nan(alpha * expm1f(x / alpha), 0.0f);
}
HN_FN float hn_fn_hardsigmoid(float x, float alpha, float beta) { return hn_min_nan(hn_max_nan(x * alpha + beta, 0.0f), 1.0f); }
HN_FN float hn_fn_hardswish(float x, float alpha, float beta) { return x * hn_fn_hardsigmoid(x, alpha, beta); }
HN_FN float hn_fn_silu(float x, float alpha, float beta) { (void)beta; return x * hn_sigmoid(alpha * x); }
#if defined(HN_FAST_MATH) && !defined(HN_EMULATED)
/* max(x, 0) - |x| N(-|x|). The logarithm of the normal distribution's tail is as smooth as a polynomial: this one's
 * relative error is 4e-5 up to 5.8; from there on results are below 1e-8. Eleven instructions a value, of which one
 * is slow: a product's last steps wait for them. */
HN_FN float hn_fn_gelu_erf(float x, float alpha, float beta) {
  (void)alpha, (void)beta;
  const float a = hn_min_nan(fabsf(x), 16.0f);
  float log2_tail = 2.42285678e-05f;
  log2_tail = log2_tail * a - 0.00063112122f;
  log2_tail = log2_tail * a + 0.00731594814f;
  log2_tail = log2_tail * a - 0.0515158214f;
  log2_tail = log2_tail * a - 0.460866153f;
  log2_tail = log2_tail * a - 1.1503545f;
  log2_tail = log2_tail * a - 1.00005186f;
  return hn_max_nan(x, 0.0f) - a * hn_exp2_near(log2_tail);
}
#else
HN_FN float hn_fn_gelu_erf(float x, float alpha, float beta) {
  (void)alpha, (void)beta;
  return 0.5f * x * (1.0f + erff(x * 0x1.6a09e6p-1f));
}
#endif
/* (1 + tanh u) / 2 = sigmoid(2u), which keeps the negative tail's relative accuracy. */
HN_FN float hn_fn_gelu_tanh(float x, float alpha, float beta) {
  (void)alpha, (void)beta;
  return x * hn_sigmoid(0x1.988454p+0f * (0.044715f * (x * x) * x + x));
}
HN_FN float hn_fn_softplus(float x, float alpha, float beta) {
  (void)alpha, (void)beta;
  return hn_max_nan(x, 0.0f) + log1pf(hn_exp(-fabsf(x)));
}
HN_FN float hn_fn_softsign(float x, float alpha, float beta) { (void)alpha, (void)beta; return x / (1.0f + fabsf(x)); }
/* tanh(log(1 + w)) = (w^2 + 2w) / (w^2 + 2w + 2) with w = exp(x); divided by w^2 where x is positive. */
HN_FN float hn_fn_mish(float x, float alpha, float beta) {
  (void)alpha, (void)beta;
  float e = hn_exp(-fabsf(x)), p = 2.0f * e + 1.0f, n = e * (e + 2.0f);
  return x * hn_div(x < 0.0f ? n : p, x < 0.0f ? n + 2.0f : 2.0f * e * e + p);
}

/* ---- binary */
HN_FN float hn_fn2_add(float x, float y) { return x + y; }
HN_FN float hn_fn2_sub(float x, float y) { return x - y; }
HN_FN float hn_fn2_mul(float x, float y) { return x * y; }
HN_FN float hn_fn2_div(float x, float y) { return x / y; }
HN_FN float hn_fn2_min(float x, float y) { return hn_min_nan(x, y); }
HN_FN float hn_fn2_max(float x, float y) { return hn_max_nan(x, y); }
HN_FN float hn_fn2_pow(float x, float y) { return powf(x, y); }
HN_FN float hn_fn2_prelu(float x, float y) { return x < 0.0f ? x * y : x; }
HN_FN float hn_fn2_eq(float x, float y) { return x == y ? 1.0f : 0.0f; }
HN_FN float hn_fn2_lt(float x, float y) { return x < y ? 1.0f : 0.0f; }
HN_FN float hn_fn2_le(float x, float y) { return x <= y ? 1.0f : 0.0f; }
HN_FN float hn_fn2_gt(float x, float y) { return x > y ? 1.0f : 0.0f; }
HN_FN float hn_fn2_ge(float x, float y) { return x >= y ? 1.0f : 0.0f; }
HN_FN float hn_fn2_and(float x, float y) { return x != 0.0f && y != 0.0f ? 1.0f : 0.0f; }
HN_FN float hn_fn2_or(float x, float y) { return x != 0.0f || y != 0.0f ? 1.0f : 0.0f; }
HN_FN float hn_fn2_xor(float x, float y) { return (x != 0.0f) != (y != 0.0f) ? 1.0f : 0.0f; }
HN_FN float hn_fn3_where(float x, float y, float z) { return x != 0.0f ? y : z; }

#endif
