/* Arguments of conv_strip.cu. */
#ifndef HN_CONV_STRIP_ARGS_H
#define HN_CONV_STRIP_ARGS_H

#include "codes_args.h"
#include "conv_wgmma_args.h"
#include "epilogue_args.h"
#include "types.h"

typedef struct hn_conv_strip_args {
  hn_map_words x, odd;      /* boxes of x; with steps of two columns, of the even and of the odd ones */
  hn_map_words staged, out; /* of the tensor that is added, and of y */
  const void *w;            /* fragments: [blocks of 64 channels][steps][128 threads][8] */
  i32 out_h, out_w, pad_h, pad_w;
  i32 strips; /* of an image */
  i32 lines;  /* of all strips of all images */
  hn_epilogue_args epilogue;
  hn_codes_args codes; /* of codes, in place of the epilogue */
  i32 channels;        /* of codes: of y that are no padding */
  i32 border_columns, border_pitch;
  const void *border, *lacking; /* as in hn_conv_wgmma_args */
} hn_conv_strip_args;

#endif
