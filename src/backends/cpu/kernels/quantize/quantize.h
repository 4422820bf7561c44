/* Affine quantisation of f32 to integers of 8 and 16 bits and back. */
#ifndef HN_KERNELS_QUANTIZE_H
#define HN_KERNELS_QUANTIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

/* How a sum is computed: as defined, or by three constants, with a look at ties or where every pair of codes
 * was tried and none needs it. */
typedef enum hn_add_way { HN_ADD_EXACT, HN_ADD_CHECKED, HN_ADD_PROVED } hn_add_way;

/* Codes of two sides and of their sum; scales are finite and positive. */
typedef struct hn_quantize_add {
  float a_scale, a_zero, b_scale, b_zero, y_scale, y_zero;
  bool a_signed, b_signed, y_signed;
  /* by prepare_add */
  hn_add_way fast;
  float ka, kb, c;
} hn_quantize_add;

/* Codes of a side and of a product; scales from 2^-30 to 2^30. */
typedef struct hn_quantize_mul {
  float a_scale, a_zero, y_scale, y_zero;
  bool a_signed, y_signed;
} hn_quantize_mul;

/* What codes leave of a number: multiples of scale, from 2^-100 to 2^100. */
typedef struct hn_quantize_grid {
  float scale, lo, hi; /* ends, in scales */
  bool least;          /* of NaN the least is left, else NaN */
} hn_quantize_grid;

struct hn_quantize_ops {
  /* dst[i] = saturate(round_half_even(src[i] / scale) + zero), NaN gives the lowest value. Scale and zero are
   * vectors of n when `vectors`, else one value each; zero holds integers of dst's range. is_signed: i8, else
   * u8. */
  void (*quantize)(void *dst, const float *src, size_t n, const float *scale, const float *zero, bool vectors,
                   bool is_signed);
  /* The same with round_half_even(src[i] * scale): what integer sums go through. */
  void (*requantize)(void *dst, const float *src, size_t n, const float *scale, const float *zero,
                     bool vectors, bool is_signed);
  /* dst[i] = (src[i] - zero) * scale */
  void (*dequantize)(float *dst, const void *src, size_t n, const float *scale, const float *zero,
                     bool vectors, bool is_signed);
  /* dst[i] = saturate(round_half_even(((a[i] - a zero) * a scale + (b[i] - b zero) * b scale) / y scale) + y
   * zero), in f32 in this order: what quantize makes of the sum of what dequantize makes of a and b.  y scale
   * from 2^-100 to 2^100.  p went through prepare_add of the same table, which takes some 50 us. */
  void (*prepare_add)(hn_quantize_add *p);
  void (*add)(void *dst, const void *a, const void *b, size_t n, const hn_quantize_add *p);
  /* dst[i] = saturate(round_half_even(((a[i] - a zero) * a scale * b[i % period]) / y scale) + y zero), in
   * f32 in this order.  k[i] = a scale * b[i] / y scale; b: 0, or from 2^-60 to 2^60 in size. */
  void (*mul)(void *dst, const void *a, size_t n, const float *b, const float *k, size_t period,
              const hn_quantize_mul *p);
  /* As quantize and dequantize, codes of 16 bits at any address: i16, or u16. */
  void (*quantize_wide)(void *dst, const float *src, size_t n, const float *scale, const float *zero,
                        bool vectors, bool is_signed);
  void (*dequantize_wide)(float *dst, const void *src, size_t n, const float *scale, const float *zero,
                          bool vectors, bool is_signed);
  /* src[i] = 256 high[i] + low[i], of is_signed less 32768. */
  void (*split)(uint8_t *high, uint8_t *low, const uint16_t *src, size_t n, bool is_signed);
  /* y[i] = f32(256 high[i] + low[i]) * scale[i]: sums of both halves as one number. */
  void (*join)(float *y, const int32_t *high, const int32_t *low, size_t n, const float *scale);
  /* dst[i] = min(max(round_half_even(src[i] / scale), lo), hi) * scale, in place or not. */
  void (*grid)(float *dst, const float *src, size_t n, const hn_quantize_grid *g);
};

/* The best table at or below a tier. */
static inline const struct hn_quantize_ops *hn_quantize_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("quantize", "f32_8", isa);
  return k ? (const struct hn_quantize_ops *)k->ops : NULL;
}

#endif
