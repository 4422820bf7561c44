/* The body of quantize_8_<tier>.c. A rest shorter than a vector goes through a padded block, so that it is
 * computed by the same instructions. */
#include "backends/cpu/kernels/quantize/quantize.h"

#include <string.h>

#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec.h"
#include "base/fault.h"

/* `times`: the scale is multiplied with, else divided by (the two round differently). */
static inline vf quantized(vf x, vf scale, vf zero, vf lo, vf hi, bool times) {
  const vf q = v_add(v_round(times ? v_mul(x, scale) : v_div(x, scale)), zero);
  /* The operands' order makes NaN the lowest value. */
  return v_min_number(hi, v_max_number(q, lo));
}

/* x times the rounded 1 / scale instead of x / scale: within 2^-22 |x / scale| of each other, so below 2^-13
 * where neither saturates. Both round to the same integer unless one is so close to the middle between two:
 * such blocks are divided. */
static inline __attribute__((always_inline)) void quantize_four(unsigned char *dst, const float *src,
                                                                float scale, float zero, bool is_signed) {
  const vf lo = v_set1(is_signed ? -128.0f : 0.0f), hi = v_set1(is_signed ? 127.0f : 255.0f),
           z = v_set1(zero), least = v_sub(lo, z), most = v_sub(hi, z), over = v_set1(1.0f / scale);
  vf t[4], far = v_zero();
  HN_UNROLL for (int j = 0; j < 4; j++) {
    t[j] = v_min_number(most, v_max_number(v_mul(v_load(src + j * VEC_W), over), least));
    far = v_from_integer(t[j], far);
  }
  v_store_codes(dst, t, (int)zero, is_signed);
  if (v_any(v_lt(v_set1(0.5f - 0x1p-13f), far)) && !HN_FAULT("quantize_ties"))
    for (int j = 0; j < 4; j++)
      v_store_8(dst + j * VEC_W, quantized(v_load(src + j * VEC_W), v_set1(scale), z, lo, hi, false));
}

static inline __attribute__((always_inline)) void to_codes(void *dst_, const float *src, size_t n,
                                                           const float *scale, const float *zero,
                                                           bool vectors, bool is_signed, bool times) {
  const vf lo = v_set1(is_signed ? -128.0f : 0.0f), hi = v_set1(is_signed ? 127.0f : 255.0f);
  unsigned char *dst = dst_;
  size_t i = 0;
  if (n == 0) return;
  if (vectors) {
    for (; i + VEC_W <= n; i += VEC_W)
      v_store_8(dst + i, quantized(v_load(src + i), v_load(scale + i), v_load(zero + i), lo, hi, times));
  } else {
    const vf s = v_set1(*scale), z = v_set1(*zero);
    if (!times && *scale > 0x1p-100f && *scale < 0x1p100f)
      for (; i + 4 * VEC_W <= n; i += 4 * VEC_W) quantize_four(dst + i, src + i, *scale, *zero, is_signed);
    for (; i + VEC_W <= n; i += VEC_W) v_store_8(dst + i, quantized(v_load(src + i), s, z, lo, hi, times));
  }
  if (i == n) return;
  unsigned char rest[VEC_W];
  const vf s = vectors ? v_loadn(scale + i, n - i) : v_set1(*scale),
           z = vectors ? v_loadn(zero + i, n - i) : v_set1(*zero);
  v_store_8(rest, quantized(v_loadn(src + i, n - i), s, z, lo, hi, times));
  memcpy(dst + i, rest, HN_FAULT("quantize_tail") ? n - i - 1 : n - i);
}

static void quantize(void *dst, const float *src, size_t n, const float *scale, const float *zero,
                     bool vectors, bool is_signed) {
  to_codes(dst, src, n, scale, zero, vectors, is_signed, false);
}

static void requantize(void *dst, const float *src, size_t n, const float *scale, const float *zero,
                       bool vectors, bool is_signed) {
  to_codes(dst, src, n, scale, zero, vectors, is_signed, true);
}

static void dequantize(float *dst, const void *src_, size_t n, const float *scale, const float *zero,
                       bool vectors, bool is_signed) {
  const unsigned char *src = src_;
  size_t i = 0;
  if (n == 0) return;
  const vf s1 = v_set1(*scale), z1 = v_set1(*zero);
  for (; i + VEC_W <= n; i += VEC_W) {
    const vf q = is_signed ? v_load_i8(src + i) : v_load_u8(src + i);
    v_store(dst + i,
            vectors ? v_mul(v_sub(q, v_load(zero + i)), v_load(scale + i)) : v_mul(v_sub(q, z1), s1));
  }
  if (i == n) return;
  unsigned char rest[VEC_W] = {0};
  memcpy(rest, src + i, n - i);
  const vf q = is_signed ? v_load_i8(rest) : v_load_u8(rest);
  const vf s = vectors ? v_loadn(scale + i, n - i) : s1, z = vectors ? v_loadn(zero + i, n - i) : z1;
  v_storen(dst + i, v_mul(v_sub(q, z), s), n - i);
}

/* The sum as f32. */
static inline __attribute__((always_inline)) vf sum_at(const unsigned char *a, const unsigned char *b,
                                                       const hn_quantize_add *p) {
  const vf x = p->a_signed ? v_load_i8(a) : v_load_u8(a), y = p->b_signed ? v_load_i8(b) : v_load_u8(b);
  return v_add(v_mul(v_sub(x, v_set1(p->a_zero)), v_set1(p->a_scale)),
               v_mul(v_sub(y, v_set1(p->b_zero)), v_set1(p->b_scale)));
}

/* A vector as defined. */
static inline __attribute__((always_inline)) void
add_exactly(unsigned char *dst, const unsigned char *a, const unsigned char *b, const hn_quantize_add *p) {
  const vf lo = v_set1(p->y_signed ? -128.0f : 0.0f), hi = v_set1(p->y_signed ? 127.0f : 255.0f);
  v_store_8(dst, quantized(sum_at(a, b, p), v_set1(p->y_scale), v_set1(p->y_zero), lo, hi, false));
}

/* a ka + b kb + c with ka and kb the scales over y's and c what the zero points make. In units of 2^-24 255
 * (ka + kb) the definition rounds by at most 3 (two products, the sum, the quotient), this by at most 5
 * (three constants, two sums), so that both results lie within 2^-13 (ka + kb) of each other. They round to
 * the same integer unless one is so close to the middle between two: such vectors are computed as defined. */
typedef struct fast_add {
  vf ka, kb, c, tie;
} fast_add;

static inline __attribute__((always_inline)) void add_four(unsigned char *dst, const unsigned char *a,
                                                           const unsigned char *b, const hn_quantize_add *p,
                                                           const fast_add *f) {
  vf t[4], far = v_zero();
  HN_UNROLL for (int j = 0; j < 4; j++) {
    const unsigned char *u = a + j * VEC_W, *v = b + j * VEC_W;
    const vf x = p->a_signed ? v_load_i8(u) : v_load_u8(u), y = p->b_signed ? v_load_i8(v) : v_load_u8(v);
    t[j] = v_fma(x, f->ka, v_fma(y, f->kb, f->c));
    far = v_from_integer(t[j], far);
  }
  v_store_codes(dst, t, (int)p->y_zero, p->y_signed);
  if (__builtin_expect(!v_any(v_lt(f->tie, far)), 1) || HN_FAULT("quantize_add_ties")) return;
  for (int j = 0; j < 4; j++)
    if (v_any(v_lt(f->tie, v_from_integer(t[j], v_zero()))))
      add_exactly(dst + j * VEC_W, a + j * VEC_W, b + j * VEC_W, p);
}

static inline __attribute__((always_inline)) void add_all(unsigned char *dst, const unsigned char *a,
                                                          const unsigned char *b, size_t n,
                                                          const hn_quantize_add *p) {
  const double ka = (double)p->a_scale / (double)p->y_scale, kb = (double)p->b_scale / (double)p->y_scale,
               c = -((double)p->a_zero * ka + (double)p->b_zero * kb);
  const fast_add f = {v_set1((float)ka), v_set1((float)kb), v_set1((float)c),
                      v_set1((float)(0.5 - 0x1p-13 * (ka + kb) - 0x1p-24))};
  size_t i = 0;
  if (ka + kb < 64)
    for (; i + 4 * VEC_W <= n; i += 4 * VEC_W) add_four(dst + i, a + i, b + i, p, &f);
  for (; i + VEC_W <= n; i += VEC_W) add_exactly(dst + i, a + i, b + i, p);
  if (i == n) return;
  unsigned char x[VEC_W] = {0}, y[VEC_W] = {0}, rest[VEC_W];
  memcpy(x, a + i, n - i);
  memcpy(y, b + i, n - i);
  add_exactly(rest, x, y, p);
  memcpy(dst + i, rest, HN_FAULT("quantize_tail") ? n - i - 1 : n - i);
}

/* Writing dst over a or b is not allowed: a block near a tie is computed twice. */
static void add(void *dst, const void *a, const void *b, size_t n, const hn_quantize_add *q) {
  hn_quantize_add p = *q;
  if (!p.a_signed && !p.b_signed && !p.y_signed) { /* the usual types, known to the compiler */
    p.a_signed = p.b_signed = p.y_signed = false;
    add_all(dst, a, b, n, &p);
  } else {
    add_all(dst, a, b, n, &p);
  }
}

static const struct hn_quantize_ops table = {
    .quantize = quantize, .requantize = requantize, .dequantize = dequantize, .add = add};
