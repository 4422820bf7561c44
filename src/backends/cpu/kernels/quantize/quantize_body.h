/* The body of quantize_8_<tier>.c. A rest shorter than a vector goes through a padded block, so that it is
 * computed by the same instructions. */
#include "backends/cpu/kernels/quantize/quantize.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec.h"
#include "backends/cpu/kernels/vec/vec_codes.h"
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

#include "backends/cpu/kernels/quantize/add_body.h"
#include "backends/cpu/kernels/quantize/mul_body.h"
#include "backends/cpu/kernels/quantize/wide_body.h"

static const struct hn_quantize_ops table = {.quantize = quantize,
                                             .requantize = requantize,
                                             .dequantize = dequantize,
                                             .add = add,
                                             .prepare_add = prepare_add,
                                             .mul = mul,
                                             .quantize_wide = quantize_wide,
                                             .dequantize_wide = dequantize_wide,
                                             .split = split,
                                             .join = join,
                                             .grid = grid};
