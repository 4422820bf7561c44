/* Arguments of codes_average.cu. */
#ifndef HN_CUDA_CODES_AVERAGE_ARGS_H
#define HN_CUDA_CODES_AVERAGE_ARGS_H

#include "types.h"

typedef struct hn_codes_average_args {
  const void *x;
  void *y;
  i64 image, pixel, y_image;    /* distances */
  i32 pixels, channels, stored; /* stored: channels of y with its padding */
  i32 slabs;                    /* of 128 channels */
  i32 taken;                    /* from every sum: pixels times the zero point */
  i32 zero;
  float scale;
} hn_codes_average_args;

#endif
