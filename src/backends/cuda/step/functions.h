/* The device's names of elementwise functions and data types. */
#ifndef HN_CUDA_STEP_FUNCTIONS_H
#define HN_CUDA_STEP_FUNCTIONS_H

#include <hone/plugin.h>

#include "base/str.h"

/* The part after hn_fn_, hn_fn2_ or hn_fn3_ in device/math.cuh, and the number of operands; NULL for what is
 * no function (LOAD, STORE, CONST, unknown numbers). */
const char *hn_cuda_function(unsigned op, unsigned *operands);

/* Instructions that it takes for a value, under HN_FAST_MATH; 0 for what takes one or a few. For costs. */
unsigned hn_cuda_function_instructions(unsigned op);

/* "f32", "f16" or "bf16": what hn_load_<type> and HN_T want. NULL for any other. */
const char *hn_cuda_type(hone_dtype dtype);

/* The C type of an element's value ("float" for f16); NULL for strings and complex numbers. */
const char *hn_cuda_value(hone_dtype dtype);

/* A number as device text that reads back as the same bits: "0xc00000p-23f", or by its bits where it
 * is not finite. */
void hn_cuda_literal(hn_str *text, float value);

#endif
