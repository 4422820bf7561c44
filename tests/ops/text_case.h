/* A case of an operator as text: inputs "i32:2x3=1,2,3,4,5,6 f32:=0.5 -" are dtype, dimensions and values, or
 * left out; expected outputs read the same way, without values only dtype and dimensions count.
 * "f32:2x3~5" is filled by a formula: element i is r / 32 - 1 of a float, r of u8, r - 128 of i8, where r is
 * 37 i + 11 x 5 modulo 64 (of floats) or 256. */
#ifndef HN_TESTS_TEXT_CASE_H
#define HN_TESTS_TEXT_CASE_H

#include "ops/op_case.h"

typedef struct text_case {
  const char *op;
  int opset;
  const char *inputs, *attrs, *outputs; /* outputs NULL: must be refused */
} text_case;

enum { TEXT_VALUES = 64 };

typedef struct text_spec {
  hone_dtype dtype;
  char dims[64];
  double value[TEXT_VALUES];
  size_t n;
  int seed; /* of the formula; -1: none */
} text_spec;

/* One input or output; the word is cut up. */
text_spec text_read(char *word);
/* Begins the case and runs it; op_end ends it. */
hone_status text_run(op_case *c, const text_case *t, uint32_t n_out);
/* Runs it and compares what comes out, or asserts that it is refused with a reason. */
void text_check(const text_case *t);

/* The same; floats may be off by `near` of the largest expected one, or of 1. */
void text_check_near(const text_case *t, double near);

#define CHECK_ALL(cases)                                                                                     \
  for (size_t i = 0; i < sizeof(cases) / sizeof *(cases); i++) text_check(&(cases)[i])

#endif
