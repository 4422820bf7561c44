/* Elementary functions over vec.h's vectors. Error bounds are against the exact value, in units in the last
 * place of the result, over the whole range of f32; check_kernels samples every exponent and the bends
 * densely.
 *
 *   v_exp 1   v_expm1 1.5   v_log 1   v_log1p01 (on [0, 1]) 1.5   v_tanh 2.5   v_erf 1.5   v_sigmoid 2.5
 *   v_softplus 2   v_gelu_erf 1, plus |x| 2^-23   v_mish 4, plus |x| 2^-149 where exp(x) is denormal
 *
 * Special values follow IEEE and C: exp(-inf) = 0, log(0) = -inf, log(x < 0) = NaN, tanh(+-inf) = +-1,
 * sigmoid(-inf) = 0, NaN in gives NaN out, odd functions keep the sign of zero. Denormal arguments and
 * results are honoured.
 *
 * Method: Cody-Waite reduction and minimax polynomials; the coefficients were found with a weighted Remez
 * exchange (weights chosen so that the error is relative to the result) and rounded to f32. */
#ifndef HN_VEC_MATH_H
#define HN_VEC_MATH_H

#include "backends/cpu/kernels/vec/vec.h"
#if VEC_W == 16
#include "backends/cpu/kernels/vec/vec_gelu.h"
#endif

#if VEC_W == 1

static inline vf v_exp(vf x) { return expf(x); }
static inline vf v_exp_nonpos(vf x) { return expf(x); }
static inline vf v_exp_weight(vf x) { return x < -87.0f ? 0.0f : expf(x); }
static inline vf v_expm1(vf x) { return expm1f(x); }
static inline vf v_log(vf x) { return logf(x); }
static inline vf v_log1p01(vf x) { return log1pf(x); }
static inline vf v_tanh(vf x) { return tanhf(x); }
static inline vf v_erf(vf x) { return erff(x); }
static inline vf v_gelu_erf(vf x) { return 0.5f * x * (1.0f + erff(x * 0x1.6a09e6p-1f)); }

#else

/* ln 2 in two parts; the first has 9 significant bits, so n * LN2_HI is exact for the n that occur. */
#define VEC_LN2_HI 0x1.63p-1f
#define VEC_LN2_LO -0x1.bd0106p-13f
#define VEC_LOG2E 0x1.715476p+0f

/* exp(r) - 1 for |r| <= ln(2) / 2. */
static inline vf v_expm1_core(vf r) {
  vf q = v_set1(0x1.6d7432p-10f);
  q = v_fma(v_set1(0x1.a1a12cp-13f), r, q);
  q = v_fma(q, r, v_set1(0x1.111090p-7f));
  q = v_fma(q, r, v_set1(0x1.5554aep-5f));
  q = v_fma(q, r, v_set1(0x1.555556p-3f));
  q = v_fma(q, r, v_set1(0.5f));
  return v_fma(v_mul(q, r), r, r);
}

/* x = n ln 2 + r; returns r. */
static inline vf v_reduce_ln2(vf x, vf *n) {
  *n = v_round(v_mul(x, v_set1(VEC_LOG2E)));
  return v_fnma(*n, v_set1(VEC_LN2_LO), v_fnma(*n, v_set1(VEC_LN2_HI), x));
}

static inline vf v_exp(vf x) {
  /* Clamped where the result has already become 0 or inf; NaN passes. */
  x = v_min_number(v_set1(90.0f), v_max_number(v_set1(-105.0f), x));
  vf n, r = v_reduce_ln2(x, &n);
  return v_scale2(v_add(v_set1(1.0f), v_expm1_core(r)), n);
}

/* exp for x <= 0. */
static inline vf v_exp_nonpos(vf x) {
  x = v_max_number(v_set1(-105.0f), x);
  vf n, r = v_reduce_ln2(x, &n);
  return v_scale2(v_add(v_set1(1.0f), v_expm1_core(r)), n);
}

/* The same (1 ulp) for weights beside one of 1: 0 where the result would be denormal, on which processors
 * spend a hundred times as long, here and where it is multiplied. */
static inline vf v_exp_weight(vf x) {
  const vf least = v_set1(-87.0f), whole = v_set1(0x1.8p23f), one = v_set1(1.0f);
  const vf c = v_max_number(least, x), t = v_fma(c, v_set1(VEC_LOG2E), whole), n = v_sub(t, whole);
  const vf r = v_fnma(n, v_set1(VEC_LN2_LO), v_fnma(n, v_set1(VEC_LN2_HI), c));
  vf q = v_fma(v_set1(0x1.6a23d0p-10f), r, v_set1(0x1.123a20p-7f));
  q = v_fma(q, r, v_set1(0x1.5558f2p-5f));
  q = v_fma(q, r, v_set1(0x1.555492p-3f));
  q = v_fma(q, r, v_set1(0x1.fffffcp-2f));
  return v_weigh(v_fma(v_fma(q, r, one), r, one), t, x, least);
}

/* exp(x) - 1: 2^n (1 + p) - 1 = 2^n p + (2^n - 1), exact in its second part where cancellation could hurt. */
static inline vf v_expm1(vf x) {
  vf c = v_min_number(v_set1(88.7f), v_max_number(v_set1(-30.0f), x));
  vf n, r = v_reduce_ln2(c, &n);
  vf p = v_expm1_core(r);
  /* Halved scale: 2^128 itself is not a number of the format. */
  vf s = v_scale2(v_set1(0.5f), n);
  vf y = v_mul(v_fma(s, p, v_sub(s, v_set1(0.5f))), v_set1(2.0f));
  y = v_sel(v_lt(v_set1(88.7f), x), v_exp(x), y);
  return v_sel(v_eq(x, v_zero()), x, y);
}

static inline vf v_log(vf x) {
  vf e, m = v_split_exponent(x, &e);
  vm high = v_lt(v_set1(0x1.6a09e6p+0f), m);
  m = v_sel(high, v_mul(m, v_set1(0.5f)), m);
  e = v_sel(high, v_add(e, v_set1(1.0f)), e);
  vf f = v_sub(m, v_set1(1.0f)), f2 = v_mul(f, f);
  vf p = v_set1(-0x1.41f446p-4f);
  p = v_fma(p, f, v_set1(0x1.07cfaap-3f));
  p = v_fma(p, f, v_set1(-0x1.0cdea4p-3f));
  p = v_fma(p, f, v_set1(0x1.226e68p-3f));
  p = v_fma(p, f, v_set1(-0x1.5478c4p-3f));
  p = v_fma(p, f, v_set1(0x1.99a596p-3f));
  p = v_fma(p, f, v_set1(-0x1.00021ep-2f));
  p = v_fma(p, f, v_set1(0x1.55554ap-2f));
  vf y = v_mul(v_mul(p, f2), f);
  y = v_fma(e, v_set1(VEC_LN2_LO), y);
  y = v_fma(f2, v_set1(-0.5f), y);
  y = v_add(v_fma(e, v_set1(VEC_LN2_HI), v_zero()), v_add(f, y));
  y = v_sel(v_lt(v_zero(), x), y, v_set1(__builtin_nanf("")));
  y = v_sel(v_eq(x, v_zero()), v_set1(-__builtin_inff()), y);
  return v_sel(v_eq(x, v_set1(__builtin_inff())), x, y);
}

/* log(1 + x) for 0 <= x <= 1: the rounding of 1 + x is put back to first order. */
static inline vf v_log1p01(vf x) {
  vf u = v_add(v_set1(1.0f), x);
  vf lost = v_sub(x, v_sub(u, v_set1(1.0f)));
  return v_add(v_log(u), v_div(lost, u));
}

/* m of |tanh(x)| = m / (m + 2): exp(2|x|) - 1, small arguments relative. */
static inline vf v_tanh_part(vf x) {
  vf a = v_abs(x);
  vf t = v_min_number(v_set1(20.0f), v_add(a, a));
  vf n, r = v_reduce_ln2(t, &n);
  vf s = v_scale2(v_set1(1.0f), n);
  return v_fma(s, v_expm1_core(r), v_sub(s, v_set1(1.0f)));
}

static inline vf v_tanh(vf x) {
  vf m = v_tanh_part(x);
  return v_copysign(v_div(m, v_add(m, v_set1(2.0f))), x);
}

/* |x| <= 1: odd polynomial; beyond: 1 - exp(P(|x|)), P fitted to log(erfc). */
static inline vf v_erf(vf x) {
  vf a = v_abs(x), t = v_mul(x, x);
  vf s = v_set1(0x1.4ae4c8p-14f);
  s = v_fma(s, t, v_set1(-0x1.a485e8p-11f));
  s = v_fma(s, t, v_set1(0x1.5419f4p-8f));
  s = v_fma(s, t, v_set1(-0x1.b7fbb4p-6f));
  s = v_fma(s, t, v_set1(0x1.ce2d20p-4f));
  s = v_fma(s, t, v_set1(-0x1.81273ep-2f));
  s = v_fma(s, t, v_set1(0x1.06eba8p-3f)); /* 2/sqrt(pi) - 1, so that the sum below rounds once */
  vf small = v_fma(s, x, x);
  vf c = v_min_number(v_set1(4.0f), a);
  vf p = v_set1(0x1.86dcf0p-13f);
  p = v_fma(p, c, v_set1(-0x1.825a9cp-9f));
  p = v_fma(p, c, v_set1(0x1.65cb48p-6f));
  p = v_fma(p, c, v_set1(-0x1.a6532ap-4f));
  p = v_fma(p, c, v_set1(-0x1.46baf0p-1f));
  p = v_fma(p, c, v_set1(-0x1.2088eap+0f));
  p = v_fma(p, c, v_set1(-0x1.66215cp-12f));
  vf large = v_copysign(v_sub(v_set1(1.0f), v_exp_nonpos(p)), x);
  large = v_sel(v_lt(v_set1(3.95f), a), v_copysign(v_set1(1.0f), x), large);
  return v_sel(v_le(a, v_set1(1.0f)), small, v_sel(v_le(v_set1(1.0f), a), large, x));
}

#if VEC_W == 16
static inline vf v_gelu_erf(vf x) { return v_gelu_pieces(x, vec_gelu_by_erf); }
#else
/* x times the normal distribution's probability below x. Above |x| it is 2^(|x| R(|x|)) / 2, with R fitted so
 * that the error of that probability itself is least; one exponential does for all x, where erf takes two
 * polynomials. Beyond 13 it is below every normal number. */
static inline vf v_gelu_erf(vf x) {
  const vf a = v_abs(x), one = v_set1(1.0f), beyond = v_set1(13.0f);
  const vf half = v_min_number(beyond, v_mul(v_set1(0.5f), x)); /* finite: +inf times 0 is no number */
  vf q = v_set1(-0x1.943892p-19f);
  q = v_fma(q, a, v_set1(0x1.5b27e4p-15f));
  q = v_fma(q, a, v_set1(-0x1.992d0cp-13f));
  q = v_fma(q, a, v_set1(-0x1.eaea18p-14f));
  q = v_fma(q, a, v_set1(0x1.cd5efap-8f));
  q = v_fma(q, a, v_set1(-0x1.adeeaep-5f));
  q = v_fma(q, a, v_set1(-0x1.d63bb2p-2f));
  q = v_fma(q, a, v_set1(-0x1.26aecep+0f));
  const vf t = v_max_number(v_set1(-126.0f), v_mul(q, a)), n = v_round(t), r = v_sub(t, n);
  vf e = v_set1(0x1.5bb92ap-10f); /* 2^r: |r| <= 1/2 */
  e = v_fma(e, r, v_set1(0x1.3ceb6cp-7f));
  e = v_fma(e, r, v_set1(0x1.c6b75ap-5f));
  e = v_fma(e, r, v_set1(0x1.ebf9bap-3f));
  e = v_fma(e, r, v_set1(0x1.62e42ap-1f));
  e = v_scale2_normal(v_fma(e, r, one), n);
  const vf above = v_mul(half, v_sel(v_lt(a, beyond), e, v_zero()));
  return v_sel(v_lt(x, v_zero()), above, v_sub(x, above));
}
#endif

#endif

/* Sigmoid through exp(-|x|): no overflow, and relative accuracy down to denormal results. */
static inline vf v_sigmoid(vf x) {
  vf e = v_exp_nonpos(v_neg(v_abs(x)));
  vf num = v_sel(v_lt(x, v_zero()), e, v_set1(1.0f));
  return v_div(num, v_add(v_set1(1.0f), e));
}

/* sigmoid(a) tanh(b), as what a gate lets through, with one division: 5 units in the last place, by the
 * roundings of its parts; family "recurrent" is what is checked. */
static inline vf v_sigmoid_tanh(vf a, vf b) {
#if VEC_W == 1
  return v_mul(v_sigmoid(a), v_tanh(b));
#else
  const vf one = v_set1(1.0f), e = v_exp_nonpos(v_neg(v_abs(a))), num = v_sel(v_lt(a, v_zero()), e, one);
  const vf m = v_tanh_part(b);
  return v_copysign(v_div(v_mul(num, m), v_mul(v_add(one, e), v_add(m, v_set1(2.0f)))), b);
#endif
}

/* log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)). */
static inline vf v_softplus(vf x) {
  vf e = v_exp_nonpos(v_neg(v_abs(x)));
  return v_add(v_max_number(v_zero(), x), v_log1p01(e));
}

/* tanh(log(1 + w)) = (w^2 + 2w) / (w^2 + 2w + 2), with w = exp(x), or divided by w^2 for positive x. */
static inline vf v_mish(vf x) {
  vf e = v_exp_nonpos(v_neg(v_abs(x)));
  vf two = v_set1(2.0f), one = v_set1(1.0f);
  vf pos_num = v_fma(two, e, one);
  vf pos_den = v_fma(v_mul(two, e), e, pos_num);
  vf neg_num = v_mul(e, v_add(e, two));
  vf neg_den = v_add(neg_num, two);
  vm neg = v_lt(x, v_zero());
  return v_mul(x, v_div(v_sel(neg, neg_num, pos_num), v_sel(neg, neg_den, pos_den)));
}

#endif
