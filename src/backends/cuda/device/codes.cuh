/* From sums to codes, and from two codes to the code of their sum. Exact: what is computed is one multiplication and one
 * rounding in f32, as QLinearConv defines it; a sum is what QuantizeLinear makes of what DequantizeLinear made of both.
 *
 * Prefix: HN_CODE (u8, i8): of the output; HN_ADDED (u8, i8): codes are added, and HN_MIDDLE (u8, i8) is what the
 * product itself results in; HN_TABLE: every code of the product (HN_MIDDLE) becomes what c->table says. */
#ifndef HN_CODES_CUH
#define HN_CODES_CUH

#include "prelude.cuh"
#include "codes_args.h"

#define HN_LOW_u8 0
#define HN_HIGH_u8 255
#define HN_LOW_i8 (-128)
#define HN_HIGH_i8 127
#define HN_PICK_u8(word, k) ((float)((word) >> (8 * (k)) & 0xffu))
#define HN_PICK_i8(word, k) ((float)(i8)((word) >> (8 * (k))))
#define HN_FROM_LOWEST_u8(word) (word)
#define HN_FROM_LOWEST_i8(word) ((word) ^ 0x80808080u)

/* Added to a number below 2^22, this rounds it to the nearest integer (ties to even), which then stands in the low bits:
 * conversions have a pipe of their own, that is four times narrower. */
#define HN_ROUNDER 12582912.0f
#define HN_ROUNDER_BITS 0x4b400000

/* Four codes and four more, as numbers less their zero points, to four of their sums, before saturation: each operation
 * as defined, none fused into one rounding. The quotient is the reciprocal's product, twice mended by what is left over,
 * which makes it the rounded one (Markstein). No branches: a way out for rare cases, written out for every code of a tile,
 * is more than instruction caches hold. */
HN_FN void hn_add_codes4(const float a[4], const float b[4], const hn_codes_sum *s, i32 out[4]) {
  const i32 zero = (i32)s->y_zero - HN_ROUNDER_BITS;
  HN_UNROLL for (int k = 0; k < 4; k++) {
    const float x = __fadd_rn(__fmul_rn(a[k], s->a_scale), __fmul_rn(b[k], s->b_scale));
    float q = __fmul_rn(x, s->inverse);
    q = __fmaf_rn(__fmaf_rn(-q, s->y_scale, x), s->inverse, q);
    q = __fmaf_rn(__fmaf_rn(-q, s->y_scale, x), s->inverse, q);
    out[k] = (i32)hn_bits(__fadd_rn(q, HN_ROUNDER)) + zero;
  }
}

#ifdef HN_CODE
#define hn_pack_codes HN_PASTE(hn_codes_, HN_CODE)

/* What the weights allow (hn_codes_vectors). */
HN_FN hn_codes_short hn_codes_short_of(const hn_codes_args *c) {
  const hn_u4 w = hn_ld16((const u8 *)c->outside + 16);
  const hn_codes_short s = {w.v[0], hn_from_bits(w.v[1]), hn_from_bits(w.v[2]), hn_from_bits(w.v[3])};
  return s;
}

/* Four sums of neighbouring columns as four codes. added: four codes, where codes are added. `simple`: s->holds, as a
 * constant where the code of the other way is not wanted. */
HN_FN u32 hn_requantise4(const i32 sum[4], const float scale[4], u32 added, u32 simple, const hn_codes_short *s,
                         const hn_codes_args *c) {
  i32 q[4];
  float x[4];
#ifdef HN_ADDED
  const float low = HN_PASTE(HN_LOW_, HN_MIDDLE) - c->sum.a_zero, high = HN_PASTE(HN_HIGH_, HN_MIDDLE) - c->sum.a_zero;
  float y[4];
  HN_UNROLL for (int k = 0; k < 4; k++) {
    /* Beyond 2^22 the result is too coarse, and far beyond any code. */
    x[k] = __fadd_rn(__fadd_rn(__fmul_rn((float)sum[k], scale[k]), HN_ROUNDER), -HN_ROUNDER);
    x[k] = fminf(fmaxf(x[k], low), high);
  }
  if (simple) {
    const u32 b = HN_PASTE(HN_FROM_LOWEST_, HN_ADDED)(added);
    HN_UNROLL for (int k = 0; k < 4; k++) {
      const float t = __fmaf_rn(x[k], s->ka, __fmaf_rn(HN_PICK_u8(b, k), s->kb, s->c));
      q[k] = (i32)hn_bits(__fadd_rn(t, HN_ROUNDER)) - HN_ROUNDER_BITS;
    }
  } else {
    HN_UNROLL for (int k = 0; k < 4; k++) y[k] = HN_PASTE(HN_PICK_, HN_ADDED)(added, k) - c->sum.b_zero;
    hn_add_codes4(x, y, &c->sum, q);
  }
#else
  const i32 zero = c->zero - HN_ROUNDER_BITS;
  HN_UNROLL for (int k = 0; k < 4; k++) {
    const float f = simple ? __fadd_rn(hn_from_bits((u32)sum[k] + HN_ROUNDER_BITS), -HN_ROUNDER) : (float)sum[k];
    x[k] = __fmul_rn(f, scale[k]);
    q[k] = simple ? (i32)hn_bits(__fadd_rn(x[k], HN_ROUNDER)) + zero : __float2int_rn(x[k]) + c->zero;
  }
  (void)added, (void)s;
#endif
#ifdef HN_TABLE
  const u32 w = HN_PASTE(hn_codes_, HN_MIDDLE)(q[0], q[1], q[2], q[3]);
  const u8 *t = (const u8 *)c->table;
  return t[w & 0xff] | (u32)t[w >> 8 & 0xff] << 8 | (u32)t[w >> 16 & 0xff] << 16 | (u32)t[w >> 24] << 24;
#else
  return hn_pack_codes(q[0], q[1], q[2], q[3]);
#endif
}
#endif

#endif
