/* Arguments of depth_chain.cu. */
#ifndef HN_DEPTH_CHAIN_ARGS_H
#define HN_DEPTH_CHAIN_ARGS_H

#include "conv_wgmma_args.h"
#include "epilogue_args.h"
#include "types.h"

typedef struct hn_depth_chain_args {
  hn_map_words x, staged, out; /* boxes of x with their borders; of the tensor that is added, and of y */
  const void *depth;   /* f32 [block][taps + 1][HN_CB]: weights of the depthwise convolution, its bias last */
  const void *weights; /* of the 1x1: [block of channels][HN_BN / 8] tiles of 8 rows x 128 bytes, swizzled */
  hn_epilogue_args inner, epilogue;
  i32 k_blocks;                /* of HN_CB channels */
  i32 tiles, boxes_x, boxes_y; /* in all; of an image */
  i32 pad_h, pad_w;
} hn_depth_chain_args;

#endif
