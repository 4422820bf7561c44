/* Constants with which a sum of two codes takes two operations (device/codes.cuh, hn_codes_short). */
#ifndef HN_CUDA_QUANTIZED_SUM_CONSTANTS_H
#define HN_CUDA_QUANTIZED_SUM_CONSTANTS_H

#include <hone/tensor.h>

#include "backends/cuda/device/codes_args.h"

/* a, b and y: u8 or i8, the codes' types. Every one of the 65536 pairs was tried: where .holds is not 0,
 * round(a ka + b kb + c), each of the two multiplied and added with one rounding in f32, is after saturation
 * what hn_codes_sum defines; a is a code less its zero point, b one less the lowest that there is. Takes
 * about a millisecond. */
hn_codes_short hn_codes_sum_constants(const hn_codes_sum *s, hone_dtype a, hone_dtype b, hone_dtype y);

#endif
