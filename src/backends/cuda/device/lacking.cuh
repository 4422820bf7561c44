/* What sums of codes lack where taps outside of an image read zeros (HN_BORDER; quantized/codes_border.h). */
#ifndef HN_LACKING_CUH
#define HN_LACKING_CUH

#include "conv_wgmma_args.h"
#include "prelude.cuh"

/* The kind of an output pixel: 0 where nothing lies outside. */
HN_FN i32 kind_of(const hn_conv_wgmma_args *g, i32 pixel) {
  const i32 image = g->oh * g->ow, p = pixel % image, y = p / g->ow, x = p - y * g->ow;
  const u8 *classes = (const u8 *)g->border;
  return pixel >= g->pixels ? 0 : (i32)classes[y] * g->border_columns + (i32)classes[g->oh + x];
}
/* A vector of all columns for it. */
HN_FN const i32 *lacking_of(const hn_conv_wgmma_args *g, i32 kind) {
  return (const i32 *)g->lacking + (i64)kind * g->border_pitch;
}

#endif
