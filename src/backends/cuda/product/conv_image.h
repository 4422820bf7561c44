/* Convolutions of images: up to four channels in, f16 or bf16. What the tactics for them have in common:
 * which steps they take, their weights, their arguments. */
#ifndef HN_CUDA_PRODUCT_CONV_IMAGE_H
#define HN_CUDA_PRODUCT_CONV_IMAGE_H

#include <hone/plugin.h>

#include "backends/cuda/product/conv_image_args.h"
#include "optimize/step/conv_attr.h"

/* One group of up to four channels, a flat kernel without dilation, constant weights, pixels at multiples of
 * 8 bytes, those of the output of 16, an epilogue that can be generated. */
bool hn_conv_image_read(const hone_step *s, hn_conv_attr *a, hone_reason *why);

/* A step's weights in f32, [cout][cin][kh][kw]. */
typedef struct hn_conv_image_weights {
  float *w;
  int64_t cin, cout, kh, kw;
  bool half; /* f16, else bf16 */
} hn_conv_image_weights;

hone_status hn_conv_image_weights_open(const hone_step *s, const hn_conv_attr *a, hn_conv_image_weights *w,
                                       hone_error *error);
void hn_conv_image_weights_close(hn_conv_image_weights *w);
/* Of output channel n: channel c of the pixel in row y, column x of the kernel, in the step's type; what is
 * outside of the kernel or the channels is zero. */
uint16_t hn_conv_image_weight(const hn_conv_image_weights *w, int64_t n, int64_t y, int64_t x, int64_t c);

/* All arguments but the tiles. */
void hn_conv_image_bind(const hone_step_run *r, const hn_conv_attr *a, hn_conv_image_args *g);

#endif
