/* The body of quantize_8_<tier>.c. A rest shorter than a vector goes through a padded block, so that it is
 * computed by the same instructions. */
#include "backends/cpu/kernels/quantize/quantize.h"

#include <string.h>

#include "backends/cpu/kernels/vec/vec.h"
#include "base/fault.h"

/* `times`: the scale is multiplied with, else divided by (the two round differently). */
static inline vf quantized(vf x, vf scale, vf zero, vf lo, vf hi, bool times) {
  const vf q = v_add(v_round(times ? v_mul(x, scale) : v_div(x, scale)), zero);
  /* The operands' order makes NaN the lowest value. */
  return v_min_number(hi, v_max_number(q, lo));
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

static const struct hn_quantize_ops table = {
    .quantize = quantize, .requantize = requantize, .dequantize = dequantize};
