/* Constants with which a sum of two codes takes two operations (device/codes.cuh, hn_codes_short). */
#ifndef HN_CUDA_QUANTIZED_SUM_CONSTANTS_H
#define HN_CUDA_QUANTIZED_SUM_CONSTANTS_H

#include <hone/tensor.h>

#include "backends/cuda/device/codes_args.h"

/* a, b and y: u8 or i8, the codes' types. Every one of the 65536 pairs was tried, as were codes a beyond
 * their range: where .way is not HN_CODES_LONG, what it computes, each multiplication and addition with one
 * rounding in f32, is what hn_codes_sum defines. parts: HN_CODES_PARTS, too, which takes a from a product.
 * Takes some milliseconds. */
hn_codes_short hn_codes_sum_constants(const hn_codes_sum *s, hone_dtype a, hone_dtype b, hone_dtype y,
                                      bool parts);

#endif
