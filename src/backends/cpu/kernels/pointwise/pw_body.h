/* The body of pw_f32_<tier>.c: every elementwise function once, in the vocabulary of vec.h. */
#include "backends/cpu/kernels/pointwise/pointwise.h"

#include <math.h>

#include "backends/cpu/kernels/vec/vec_act.h"
#include "base/fault.h"

/* A unary function over a span, as instruction (nm). In `expr` x is the operand, al and be the immediates. */
#define FUNCTION(nm, params, expr)                                                                           \
  static void nm##_span(float *dst, const float *a, size_t n, const float *p) {                              \
    const vf al = v_set1((params) > 0 ? p[0] : 0.0f), be = v_set1((params) > 1 ? p[1] : 0.0f);               \
    size_t i = 0;                                                                                            \
    (void)al, (void)be, (void)p;                                                                             \
    for (; i + VEC_W <= n; i += VEC_W) {                                                                     \
      const vf x = v_load(a + i);                                                                            \
      v_store(dst + i, expr);                                                                                \
    }                                                                                                        \
    if (i < n) {                                                                                             \
      const vf x = v_loadn(a + i, n - i);                                                                    \
      v_storen(dst + i, expr, n - i);                                                                        \
    }                                                                                                        \
  }                                                                                                          \
  static void nm(float *dst, const float *a, const float *b, const float *c, size_t n, unsigned uniform,     \
                 const float *p) {                                                                           \
    (void)b, (void)c;                                                                                        \
    if (uniform & 1) {                                                                                       \
      float one;                                                                                             \
      nm##_span(&one, a, 1, p);                                                                              \
      fill(dst, one, n);                                                                                     \
    } else {                                                                                                 \
      nm##_span(dst, a, n, p);                                                                               \
    }                                                                                                        \
  }

/* And as activation in place (nm##_act). */
#define UNARY(nm, params, expr)                                                                              \
  FUNCTION(nm, params, expr)                                                                                 \
  static void nm##_act(float *x, size_t n, const float *p) { nm##_span(x, x, n, p); }

#define BINARY_LOOP(la, lan, lb, lbn, expr)                                                                  \
  do {                                                                                                       \
    size_t i = 0;                                                                                            \
    for (; i + VEC_W <= n; i += VEC_W) {                                                                     \
      const vf x = (la), y = (lb);                                                                           \
      v_store(dst + i, expr);                                                                                \
    }                                                                                                        \
    if (i < n) {                                                                                             \
      const vf x = (lan), y = (lbn);                                                                         \
      v_storen(dst + i, expr, n - i);                                                                        \
    }                                                                                                        \
  } while (0)

/* A binary function in its three useful forms: vector-vector, vector-scalar, scalar-vector. */
#define BINARY(nm, expr)                                                                                     \
  static void nm(float *dst, const float *a, const float *b, const float *c, size_t n, unsigned uniform,     \
                 const float *p) {                                                                           \
    (void)c, (void)p;                                                                                        \
    if (n == 0) return;                                                                                      \
    const vf ua = v_set1(*a), ub = v_set1(*b);                                                               \
    switch (uniform & 3) {                                                                                   \
    case 0:                                                                                                  \
      BINARY_LOOP(v_load(a + i), v_loadn(a + i, n - i), v_load(b + i), v_loadn(b + i, n - i), expr);         \
      break;                                                                                                 \
    case 1: BINARY_LOOP(ua, ua, v_load(b + i), v_loadn(b + i, n - i), expr); break;                          \
    case 2: BINARY_LOOP(v_load(a + i), v_loadn(a + i, n - i), ub, ub, expr); break;                          \
    default: BINARY_LOOP(ua, ua, ub, ub, expr); break;                                                       \
    }                                                                                                        \
  }

static void fill(float *dst, float value, size_t n) {
  const vf v = v_set1(value);
  size_t i = 0;
  for (; i + VEC_W <= n; i += VEC_W) v_store(dst + i, v);
  if (i < n) v_storen(dst + i, v, n - i);
}

/* Loops that compilers make vectors of. */
static void from_bool(float *restrict dst, const uint8_t *restrict src, size_t n) {
  if (n && HN_FAULT("pointwise_bool_end")) n--;
  for (size_t i = 0; i < n; i++) dst[i] = src[i] ? 1.0f : 0.0f;
}
static void to_bool(uint8_t *restrict dst, const float *restrict src, size_t n) {
  if (n && HN_FAULT("pointwise_bool_end")) n--;
  for (size_t i = 0; i < n; i++) dst[i] = src[i] != 0.0f;
}

/* A comparison's result as a number. */
static inline vf truth(vm m) { return v_sel(m, v_set1(1.0f), v_zero()); }
static inline vm nonzero(vf x) { return v_ne(x, v_zero()); }

static inline vf sign_of(vf x) {
  vf s = v_sel(v_lt(x, v_zero()), v_set1(-1.0f), v_zero());
  s = v_sel(v_lt(v_zero(), x), v_set1(1.0f), s);
  return v_sel(v_ne(x, x), x, s);
}

UNARY(not_f, 0, truth(v_eq(x, v_zero())))
UNARY(neg_f, 0, v_neg(x))
UNARY(abs_f, 0, v_abs(x))
UNARY(sqrt_f, 0, v_sqrt(x))
UNARY(reciprocal_f, 0, v_div(v_set1(1.0f), x))
UNARY(exp_f, 0, v_exp(x))
UNARY(log_f, 0, v_log(x))
UNARY(erf_f, 0, v_erf(x))
UNARY(tanh_f, 0, v_tanh(x))
UNARY(sigmoid_f, 0, v_sigmoid(x))
UNARY(floor_f, 0, v_floor(x))
UNARY(ceil_f, 0, v_ceil(x))
UNARY(round_f, 0, v_round(x))
UNARY(sign_f, 0, sign_of(x))
UNARY(relu_f, 0, v_max_number(v_zero(), x))
UNARY(clip_f, 2, v_min_number(be, v_max_number(al, x)))
UNARY(leaky_f, 1, v_leaky(x, al))
UNARY(elu_f, 1, v_elu(x, al))
UNARY(selu_f, 2, v_mul(be, v_sel(v_le(x, v_zero()), v_mul(al, v_expm1(x)), x)))
UNARY(celu_f, 1, v_add(v_max_number(v_zero(), x), v_min_number(v_zero(), v_mul(al, v_expm1(v_div(x, al))))))
UNARY(hardsigmoid_f, 2, v_ramp(x, al, be))
UNARY(hardswish_f, 2, v_mul(x, v_ramp(x, al, be)))
UNARY(silu_f, 1, v_mul(x, v_sigmoid(v_mul(al, x))))
UNARY(gelu_erf_f, 0, v_gelu_erf(x))
UNARY(gelu_tanh_f, 0, v_gelu_tanh(x))
UNARY(softplus_f, 0, v_softplus(x))
UNARY(softsign_f, 0, v_div(x, v_add(v_set1(1.0f), v_abs(x))))
UNARY(mish_f, 0, v_mish(x))

BINARY(add_f, v_add(x, y))
BINARY(sub_f, v_sub(x, y))
BINARY(mul_f, v_mul(x, y))
BINARY(div_f, v_div(x, y))
BINARY(min_f, v_min(x, y))
BINARY(max_f, v_max(x, y))
BINARY(prelu_f, v_sel(v_lt(x, v_zero()), v_mul(x, y), x))
BINARY(eq_f, truth(v_eq(x, y)))
BINARY(lt_f, truth(v_lt(x, y)))
BINARY(le_f, truth(v_le(x, y)))
BINARY(gt_f, truth(v_lt(y, x)))
BINARY(ge_f, truth(v_le(y, x)))
BINARY(and_f, v_sel(nonzero(x), truth(nonzero(y)), v_zero()))
BINARY(or_f, v_sel(nonzero(x), v_set1(1.0f), truth(nonzero(y))))
BINARY(xor_f, v_sel(nonzero(x), truth(v_eq(y, v_zero())), truth(nonzero(y))))

/* Of -infinity it is infinity, of -0 it is 0. */
static inline vf power_half(vf x) {
  if (HN_FAULT("pointwise_power_half")) return v_sqrt(x);
  return v_sel(v_eq(x, v_set1(-INFINITY)), v_set1(INFINITY), v_sqrt(v_add(x, v_zero())));
}

FUNCTION(cube_f, 0, v_mul(v_mul(x, x), x))
FUNCTION(power_half_f, 0, power_half(x))
FUNCTION(power_less_half_f, 0, v_div(v_set1(1.0f), power_half(x)))

/* Exponents that are few multiplications, a division or a square root; everything else is powf. */
static void pow_f(float *dst, const float *a, const float *b, const float *c, size_t n, unsigned uniform,
                  const float *p) {
  (void)c, (void)p;
  if (n == 0) return;
  if ((uniform & 3) == 2 && *b == 2.0f) {
    mul_f(dst, a, a, NULL, n, 0, NULL);
    return;
  }
  if ((uniform & 3) == 2 && *b == -1.0f) {
    reciprocal_f(dst, a, NULL, NULL, n, 0, NULL);
    return;
  }
  if ((uniform & 3) == 2 && *b == 3.0f) {
    cube_f(dst, a, NULL, NULL, n, 0, NULL);
    return;
  }
  if ((uniform & 3) == 2 && *b == 0.5f) {
    power_half_f(dst, a, NULL, NULL, n, 0, NULL);
    return;
  }
  if ((uniform & 3) == 2 && *b == -0.5f) {
    power_less_half_f(dst, a, NULL, NULL, n, 0, NULL);
    return;
  }
  const size_t sa = uniform & 1 ? 0 : 1, sb = uniform & 2 ? 0 : 1;
  const float a0 = *a, b0 = *b; /* dst may be the array of a uniform operand */
  for (size_t i = 0; i < n; i++) dst[i] = powf(sa ? a[i] : a0, sb ? b[i] : b0);
}

static void where_f(float *dst, const float *a, const float *b, const float *c, size_t n, unsigned uniform,
                    const float *p) {
  (void)p;
  if (n == 0) return;
  const vf ua = v_set1(*a), ub = v_set1(*b), uc = v_set1(*c);
  const unsigned la = !(uniform & 1), lb = !(uniform & 2), lc = !(uniform & 4);
  size_t i = 0;
  for (; i + VEC_W <= n; i += VEC_W) {
    const vf x = la ? v_load(a + i) : ua, y = lb ? v_load(b + i) : ub, z = lc ? v_load(c + i) : uc;
    v_store(dst + i, v_sel(nonzero(x), y, z));
  }
  if (i < n) {
    const size_t m = HN_FAULT("pointwise_where_tail") ? n - i - 1 : n - i;
    const vf x = la ? v_loadn(a + i, m) : ua, y = lb ? v_loadn(b + i, m) : ub,
             z = lc ? v_loadn(c + i, m) : uc;
    v_storen(dst + i, v_sel(nonzero(x), y, z), m);
  }
}

#if VEC_W > 1
/* Lane i is lane floor((first + i + 1/2) * by) of a. */
static inline vf v_spread(vf a, float first, float by) {
#if VEC_W == 16
  const vf lane = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const vf from = v_mul(v_add(lane, v_set1(first + 0.5f)), v_set1(by));
  return _mm512_permutexvar_ps(_mm512_cvttps_epi32(from), a);
#else
  const vf lane = _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7);
  const vf from = v_mul(v_add(lane, v_set1(first + 0.5f)), v_set1(by));
  return _mm256_permutevar8x32_ps(a, _mm256_cvttps_epi32(from));
#endif
}

/* src[r] n times each, n < VEC_W: a vector of the result comes from neighbouring elements. */
static void spread_rows(float *dst, const float *src, size_t rows, size_t n) {
  const float by = 1.0f / (float)n;
  const size_t rows_each = VEC_W / n, rest = VEC_W % n;
  size_t r = 0, within = 0; /* row of the vector's first element, which of it that is */
  for (size_t left = rows * n, some; left; left -= some, dst += some) {
    const vf from = rows - r < VEC_W ? v_loadn(src + r, rows - r) : v_load(src + r);
    const vf v = v_spread(from, (float)within, by);
    some = left < VEC_W ? left : VEC_W;
    if (some == VEC_W)
      v_store(dst, v);
    else
      v_storen(dst, v, HN_FAULT("pointwise_spread_tail") ? some - 1 : some);
    r += rows_each, within += rest;
    if (within >= n) within -= n, r++;
  }
}
#endif

/* Whole vectors are stored as long as there is room: what they write behind a row is written again by the
 * next ones. */
static void rows_f(float *dst, const float *src, size_t rows, size_t n, ptrdiff_t pitch, bool dense) {
  if (dense && (size_t)pitch == n) n *= rows, rows = rows > 0;
#if VEC_W > 1
  if (!dense && pitch == 1 && n > 0 && n < VEC_W) {
    spread_rows(dst, src, rows, n);
    return;
  }
#endif
  const size_t whole = n / VEC_W * VEC_W, tail = n - whole;
  const float *end = dst + rows * n;
  for (size_t r = 0; r < rows; r++, dst += n, src += pitch) {
    const vf one = n ? v_set1(*src) : v_zero();
    for (size_t i = 0; i < whole; i += VEC_W) v_store(dst + i, dense ? v_load(src + i) : one);
    if (tail == 0) continue;
    const vf v = dense ? v_loadn(src + whole, tail) : one;
    if ((size_t)(end - dst) - whole >= VEC_W)
      v_store(dst + whole, v);
    else
      v_storen(dst + whole, v, HN_FAULT("pointwise_rows_tail") ? tail - 1 : tail);
  }
}

#define BOTH(op, nm) .fn[op] = nm, .act[op] = nm##_act
static const struct hn_pw_ops table = {
    .rows = rows_f,
    .from_bool = from_bool,
    .to_bool = to_bool,
    .fn[HONE_PW_ADD] = add_f,
    .fn[HONE_PW_SUB] = sub_f,
    .fn[HONE_PW_MUL] = mul_f,
    .fn[HONE_PW_DIV] = div_f,
    .fn[HONE_PW_MIN] = min_f,
    .fn[HONE_PW_MAX] = max_f,
    .fn[HONE_PW_POW] = pow_f,
    .fn[HONE_PW_PRELU] = prelu_f,
    .fn[HONE_PW_EQ] = eq_f,
    .fn[HONE_PW_LT] = lt_f,
    .fn[HONE_PW_LE] = le_f,
    .fn[HONE_PW_GT] = gt_f,
    .fn[HONE_PW_GE] = ge_f,
    .fn[HONE_PW_AND] = and_f,
    .fn[HONE_PW_OR] = or_f,
    .fn[HONE_PW_XOR] = xor_f,
    .fn[HONE_PW_WHERE] = where_f,
    BOTH(HONE_PW_NOT, not_f),
    BOTH(HONE_PW_NEG, neg_f),
    BOTH(HONE_PW_ABS, abs_f),
    BOTH(HONE_PW_SQRT, sqrt_f),
    BOTH(HONE_PW_RECIPROCAL, reciprocal_f),
    BOTH(HONE_PW_EXP, exp_f),
    BOTH(HONE_PW_LOG, log_f),
    BOTH(HONE_PW_ERF, erf_f),
    BOTH(HONE_PW_TANH, tanh_f),
    BOTH(HONE_PW_SIGMOID, sigmoid_f),
    BOTH(HONE_PW_FLOOR, floor_f),
    BOTH(HONE_PW_CEIL, ceil_f),
    BOTH(HONE_PW_ROUND, round_f),
    BOTH(HONE_PW_SIGN, sign_f),
    BOTH(HONE_PW_RELU, relu_f),
    BOTH(HONE_PW_CLIP, clip_f),
    BOTH(HONE_PW_LEAKYRELU, leaky_f),
    BOTH(HONE_PW_ELU, elu_f),
    BOTH(HONE_PW_SELU, selu_f),
    BOTH(HONE_PW_CELU, celu_f),
    BOTH(HONE_PW_HARDSIGMOID, hardsigmoid_f),
    BOTH(HONE_PW_HARDSWISH, hardswish_f),
    BOTH(HONE_PW_SILU, silu_f),
    BOTH(HONE_PW_GELU_ERF, gelu_erf_f),
    BOTH(HONE_PW_GELU_TANH, gelu_tanh_f),
    BOTH(HONE_PW_SOFTPLUS, softplus_f),
    BOTH(HONE_PW_SOFTSIGN, softsign_f),
    BOTH(HONE_PW_MISH, mish_f),
};
