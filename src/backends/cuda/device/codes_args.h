/* How sums of products of codes become codes again (device/codes.cuh). */
#ifndef HN_CODES_ARGS_H
#define HN_CODES_ARGS_H

#include "types.h"

/* Two codes to the code of the sum of what they mean. */
typedef struct hn_codes_sum {
  float a_scale, a_zero, b_scale, b_zero, y_scale, y_zero; /* as defined */
  float inverse;                                           /* of y_scale, rounded */
} hn_codes_sum;

/* Shorter ways to the same codes. */
enum {
  HN_CODES_LONG,  /* as defined */
  HN_CODES_SHORT, /* HN_ADDED: the constants are right for every pair of codes; else: all sums and results are
                     below 2^22 */
  HN_CODES_PARTS  /* HN_ADDED: the same, of codes as parts of their range */
};

/* A little over 1 / 255, so that for bases of 24 bits there are sums with it as near as wanted. */
#define HN_CODES_PART 0x1.010104p-8f

/* Which way there is, and what it takes. a: a code less its zero point; b: one less the lowest.
 * HN_CODES_SHORT: the code of a sum is a ka + b kb + c, rounded once more.
 * HN_CODES_PARTS: x + rounder is a + rounder; u = that HN_CODES_PART + base, within 0 and 1, is where a lies
 * between the lowest and the highest code; u ka + (b + 32768) kb + c, within 0 and 1, is where the sum lies
 * between its own. */
typedef struct hn_codes_short {
  u32 way;
  float ka, kb, c, base, rounder;
  float many; /* 32768: what the compiler does not know stays in a register, and costs no move each time */
  u32 unused;
} hn_codes_short;

typedef struct hn_codes_args {
  const void *bias;  /* i32 of each column of the output: what is added to its sums */
  const void *scale; /* f32 of each column: from sums to units of the result */
  const void *zeros; /* HN_ZEROS: i32 of each column, in place of zero */
  const void
      *outside; /* 16 codes of the input's zero point: what lies outside of an image; then hn_codes_short */
  const void *added; /* codes that lie as the output's: `sum` says what becomes of both */
  const void *table; /* 256 codes: what becomes of each of the product's own */
  hn_codes_sum sum;
  i32 zero; /* of the product's own result */
} hn_codes_args;

#endif
