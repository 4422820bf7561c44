/* Arguments of conv_chain.cu. */
#ifndef HN_CONV_CHAIN_ARGS_H
#define HN_CONV_CHAIN_ARGS_H

#include "conv_wgmma_args.h"

typedef struct hn_conv_chain_args {
  /* The first product; staged, out, y, y_pixel, columns and epilogue are the last one's. */
  hn_conv_wgmma_args conv;
  hn_epilogue_args inner; /* of the first product */
  const void *last; /* the last one's weights: pieces of 64 columns, [HN_BN / 64][8] tiles as conv.weights */
  i32 chunks;       /* of 64 columns of y */
} hn_conv_chain_args;

#endif
