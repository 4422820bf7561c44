/* From sums to codes, and from two codes to the code of their sum. Exact: what is computed is one multiplication and one
 * rounding in f32, as QLinearConv defines it; a sum is what QuantizeLinear makes of what DequantizeLinear made of both.
 *
 * Prefix: HN_CODE (u8, i8): of the output; HN_ADDED (u8, i8): codes are added, and HN_MIDDLE (u8, i8) is what the
 * product itself results in; HN_ZEROS: each column has a zero point of its own (without HN_ADDED and HN_TABLE); HN_TABLE: every code of the product (HN_MIDDLE) becomes what c->table says, with HN_ADDED one
 * of HN_SUMMED (u8, i8), to which the other is added. */
#ifndef HN_CODES_CUH
#define HN_CODES_CUH

#include "quantise.cuh"
#include "codes_args.h"

#define HN_LOW_u8 0
#define HN_HIGH_u8 255
#define HN_LOW_i8 (-128)
#define HN_HIGH_i8 127
#define HN_PICK_u8(word, k) ((float)((word) >> (8 * (k)) & 0xffu))
#define HN_PICK_i8(word, k) ((float)(i8)((word) >> (8 * (k))))
#define HN_FROM_LOWEST_u8(word) (word)
#define HN_FROM_LOWEST_i8(word) ((word) ^ 0x80808080u)

/* Four codes and four more, as numbers less their zero points, to four of their sums, before saturation: each operation
 * as defined, none fused into one rounding. No branches: a way out for rare cases, written out for every code of a tile,
 * is more than instruction caches hold. */
HN_FN void hn_add_codes4(const float a[4], const float b[4], const hn_codes_sum *s, i32 out[4]) {
  const i32 zero = (i32)s->y_zero - HN_ROUNDER_BITS;
  HN_UNROLL for (int k = 0; k < 4; k++) {
    const float x = __fadd_rn(__fmul_rn(a[k], s->a_scale), __fmul_rn(b[k], s->b_scale));
    const float q = hn_quotient_rn(x, s->y_scale, s->inverse);
    out[k] = (i32)hn_bits(__fadd_rn(q, HN_ROUNDER)) + zero;
  }
}

#ifdef HN_CODE
#define hn_pack_codes HN_PASTE(hn_codes_, HN_CODE)

/* What the weights allow (hn_codes_vectors). */
HN_FN hn_codes_short hn_codes_short_of(const hn_codes_args *c) {
  const hn_codes_short *from = (const hn_codes_short *)((const u8 *)c->outside + 16);
  const hn_u4 w = hn_ld16(from), v = hn_ld16(&from->base);
  const hn_codes_short s = {w.v[0], hn_from_bits(w.v[1]), hn_from_bits(w.v[2]), hn_from_bits(w.v[3]),
                            hn_from_bits(v.v[0]), hn_from_bits(v.v[1]), hn_from_bits(v.v[2]), 0};
  return s;
}

#ifdef HN_ADDED
/* Four sums and four codes, with HN_CODES_PARTS: a code as a float is one exchange of bytes, bounds cost nothing, and the code of a part is the low
 * byte of 255 parts and 2^23. */
HN_FN u32 hn_add_parts4(const i32 sum[4], const float scale[4], u32 added, const hn_codes_short *s) {
  const u32 b = HN_PASTE(HN_FROM_LOWEST_, HN_ADDED)(added);
  u32 q[4];
  HN_UNROLL for (u32 k = 0; k < 4; k++) {
    const float u = hn_fma_sat(__fadd_rn(__fmul_rn((float)sum[k], scale[k]), s->rounder), HN_CODES_PART, s->base);
    const float part = hn_from_bits(hn_bytes(b, hn_bits(s->many), 0x7404u | k << 4)); /* 32768 + the code */
    const float y = hn_fma_sat(u, s->ka, __fmaf_rn(part, s->kb, s->c));
    q[k] = hn_bits(__fmaf_rn(y, 255, 8388608));
  }
  return HN_PASTE(HN_FROM_LOWEST_, HN_CODE)(hn_bytes(hn_bytes(q[0], q[1], 0x40), hn_bytes(q[2], q[3], 0x40), 0x5410));
}

/* With HN_CODES_SHORT, or as defined: before saturation. */
HN_FN void hn_add_short4(const i32 from[4], const float scale[4], u32 added, u32 way, const hn_codes_short *s, const hn_codes_args *c, i32 q[4]) {
  const hn_codes_sum *sum = &c->sum;
  const float zero = (float)c->zero, low = HN_PASTE(HN_LOW_, HN_MIDDLE) - zero, high = HN_PASTE(HN_HIGH_, HN_MIDDLE) - zero;
  float x[4];
  HN_UNROLL for (int k = 0; k < 4; k++) {
    /* Beyond 2^22 the result is too coarse, and far beyond any code. */
    x[k] = __fadd_rn(__fadd_rn(__fmul_rn((float)from[k], scale[k]), HN_ROUNDER), -HN_ROUNDER);
    x[k] = fminf(fmaxf(x[k], low), high);
#ifdef HN_TABLE
    const i32 code = (i32)hn_bits(__fadd_rn(x[k], HN_ROUNDER)) - HN_ROUNDER_BITS + c->zero;
    x[k] = HN_PASTE(HN_PICK_, HN_SUMMED)((u32)((const u8 *)c->table)[code & 0xff], 0) - sum->a_zero;
#endif
  }
  if (way == HN_CODES_SHORT) {
    const u32 b = HN_PASTE(HN_FROM_LOWEST_, HN_ADDED)(added);
    HN_UNROLL for (int k = 0; k < 4; k++) {
      /* A code as a float by an exchange of bytes, not by a conversion, whose pipe is four times narrower. */
      const float y = __fadd_rn(hn_from_bits(hn_bytes(b, 0x47000000u, 0x7404u | k << 4)), -32768.0f);
      const float t = __fmaf_rn(x[k], s->ka, __fmaf_rn(y, s->kb, s->c));
      q[k] = (i32)hn_bits(__fadd_rn(t, HN_ROUNDER)) - HN_ROUNDER_BITS;
    }
    return;
  }
  float y[4];
  HN_UNROLL for (int k = 0; k < 4; k++) y[k] = HN_PASTE(HN_PICK_, HN_ADDED)(added, k) - sum->b_zero;
  hn_add_codes4(x, y, sum, q);
}
#endif

/* Four sums of neighbouring columns as four codes. zeros: theirs, with HN_ZEROS. added: four codes, where codes are added. `way`: s->way, as a
 * constant where the code of the other ways is not wanted. */
HN_FN u32 hn_requantise4(const i32 sum[4], const float scale[4], const i32 *zeros, u32 added, u32 way, const hn_codes_short *s,
                         const hn_codes_args *c) {
  i32 q[4];
#ifdef HN_ADDED
  if (way == HN_CODES_PARTS) return hn_add_parts4(sum, scale, added, s);
  hn_add_short4(sum, scale, added, way, s, c, q);
#else
  HN_UNROLL for (int k = 0; k < 4; k++) {
#ifdef HN_ZEROS
    const i32 zero = zeros[k];
#else
    const i32 zero = c->zero;
#endif
    const u32 small = way == HN_CODES_SHORT;
    const float f = small ? __fadd_rn(hn_from_bits((u32)sum[k] + HN_ROUNDER_BITS), -HN_ROUNDER) : (float)sum[k];
    const float x = __fmul_rn(f, scale[k]);
    q[k] = small ? (i32)hn_bits(__fadd_rn(x, HN_ROUNDER)) + (zero - HN_ROUNDER_BITS) : __float2int_rn(x) + zero;
  }
  (void)added, (void)s;
#endif
  (void)zeros;
#if defined(HN_TABLE) && !defined(HN_ADDED)
  const u32 w = HN_PASTE(hn_codes_, HN_MIDDLE)(q[0], q[1], q[2], q[3]);
  const u8 *t = (const u8 *)c->table;
  return t[w & 0xff] | (u32)t[w >> 8 & 0xff] << 8 | (u32)t[w >> 16 & 0xff] << 16 | (u32)t[w >> 24] << 24;
#else
  return hn_pack_codes(q[0], q[1], q[2], q[3]);
#endif
}
#endif

#endif
