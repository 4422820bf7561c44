/* Family "act_codes": rows of f32 behind a product become codes of 8 bits in one pass,
 *
 *   y = saturate(round_half_even(act(x factor + bias) / scale) + zero)
 *
 * NaN gives the lowest code. SiLU is off by |x| 2^-24 at most where lanes are sixteen (vec_silu.h), all else
 * is what the kernels of pointwise functions and of quantisation make of it, one behind the other. */
#ifndef HN_KERNELS_ACT_CODES_H
#define HN_KERNELS_ACT_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hone/plugin.h>

#include "backends/cpu/kernels/kernel.h"

typedef struct hn_act_codes {
  const float *factor, *bias; /* one a column; NULL: none */
  hone_pw_op act;             /* one that hn_act_codes_takes; HONE_PW_NONE: none */
  float p[2];
  const float *scale, *over; /* 2^-100 .. 2^100, and 1 / scale: one, or one a column */
  float zero;
  bool vectors, is_signed;
} hn_act_codes;

struct hn_act_codes_ops {
  /* Rows of n floats, x_pitch floats apart, to codes y_pitch bytes apart. */
  void (*rows)(const hn_act_codes *a, uint8_t *y, ptrdiff_t y_pitch, const float *x, ptrdiff_t x_pitch,
               size_t rows, size_t n);
};

/* p: the function's immediates. */
static inline bool hn_act_codes_takes(hone_pw_op act, const float *p) {
  switch (act) {
  case HONE_PW_NONE:
  case HONE_PW_RELU:
  case HONE_PW_CLIP:
  case HONE_PW_LEAKYRELU:
  case HONE_PW_HARDSIGMOID:
  case HONE_PW_HARDSWISH:
  case HONE_PW_SIGMOID:
  case HONE_PW_TANH:
  case HONE_PW_GELU_ERF: return true;
  case HONE_PW_SILU: return p[0] > 0x1p-20f && p[0] < 0x1p20f;
  default: return false;
  }
}

/* The best table at or below a tier. */
static inline const struct hn_act_codes_ops *hn_act_codes_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("act_codes", "f32", isa);
  return k ? (const struct hn_act_codes_ops *)k->ops : NULL;
}

#endif
