/* Arguments of conv_chain.cu. */
#ifndef HN_CONV_CHAIN_ARGS_H
#define HN_CONV_CHAIN_ARGS_H

#include "conv_wgmma_args.h"

enum { HN_CHAIN_SPREAD = 8 }; /* groups of blocks whose first tiles begin at different times */

typedef struct hn_conv_chain_args {
  hn_conv_wgmma_args
      conv; /* the first product; staged, out, y, y_pixel, columns and epilogue are the last one's */
  hn_epilogue_args inner; /* of the first product */
  const void
      *last;   /* the last product's weights: [64 columns] pieces of [HN_BN / 64][8] tiles as conv.weights */
  i32 chunks;  /* of 64 columns of y */
  u32 stagger; /* nanoseconds from one of HN_CHAIN_SPREAD groups to the next */
} hn_conv_chain_args;

#endif
