/* How sums of products of codes become codes again (device/codes.cuh). */
#ifndef HN_CODES_ARGS_H
#define HN_CODES_ARGS_H

#include "types.h"

/* Two codes to the code of the sum of what they mean. */
typedef struct hn_codes_sum {
  float a_scale, a_zero, b_scale, b_zero, y_scale, y_zero; /* as defined */
  float inverse;                                           /* of y_scale, rounded */
} hn_codes_sum;

/* Whether there is a shorter way to the same codes, and what it takes. */
typedef struct hn_codes_short {
  u32 holds; /* HN_ADDED: the constants are right for every pair of codes; else: all sums and results are
                below 2^22 */
  float ka, kb, c; /* the code of a sum is a ka + b kb + c, rounded once more: a a code less its zero point, b
                      less the lowest */
} hn_codes_short;

typedef struct hn_codes_args {
  const void *bias;  /* i32 of each column of the output: what is added to its sums */
  const void *scale; /* f32 of each column: from sums to units of the result */
  const void
      *outside; /* 16 codes of the input's zero point: what lies outside of an image; then hn_codes_short */
  const void *added; /* codes that lie as the output's: `sum` says what becomes of both */
  const void *table; /* 256 codes: what becomes of each of the product's own */
  hn_codes_sum sum;
  i32 zero; /* of the product's own result */
} hn_codes_args;

#endif
