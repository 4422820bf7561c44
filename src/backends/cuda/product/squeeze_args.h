/* Arguments of squeeze.cu. */
#ifndef HN_SQUEEZE_ARGS_H
#define HN_SQUEEZE_ARGS_H

#include "epilogue_args.h"
#include "types.h"

enum { HN_SQUEEZE_TENSORS = 4 };

/* Of channels W is what 16 bytes hold, a vector; a slice is a block's own channels. */
typedef struct hn_squeeze_args {
  const void *x;
  const void *tensor[HN_SQUEEZE_TENSORS]; /* what the program reads, x among them, all alike */
  void *y;
  const void *first,
      *last; /* weights [hidden][channels in whole vectors], [channels][hidden in whole vectors] */
  hn_epilogue_args inner, outer;
  i32 inner_bytes[HN_EPILOGUE_INPUTS], outer_bytes[HN_EPILOGUE_INPUTS]; /* of their vectors */
  i64 image;                   /* elements from one image to the next */
  i32 pixel;                   /* from one pixel to the next */
  i32 pixels, channels;        /* of an image */
  i32 vectors, hidden_vectors; /* of a pixel; of what lies between the products */
  i32 hidden;
  i32 slices;       /* of the channels; a cluster's other blocks share their pixels */
  i32 slice;        /* vectors of a slice */
  i32 part;         /* pixels of a block */
  i32 rows, groups; /* pixels that a block's threads read at once; sums of them that are added up at once */
  float inverse;    /* 1 / pixels */
  /* Shared memory, in floats: */
  i32 at_sums, at_groups, at_mean, at_partial, at_hidden, at_gate;
} hn_squeeze_args;

#endif
