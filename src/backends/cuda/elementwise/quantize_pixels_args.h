/* Arguments of quantize_pixels.cu. */
#ifndef HN_CUDA_QUANTIZE_PIXELS_ARGS_H
#define HN_CUDA_QUANTIZE_PIXELS_ARGS_H

#include "divisor.h"
#include "quantise_args.h"
#include "types.h"

typedef struct hn_quantize_pixels_args {
  const void *x;
  void *y;
  i64 plane, image_planes; /* elements from plane to plane, and from image to image */
  u32 channels, pixels;    /* pixels: of an image, in whole fours */
  hn_divisor groups;       /* blocks of an image */
  hn_quantise_args codes;
} hn_quantize_pixels_args;

#endif
