/* Dimensions of outputs that only the elements tell, as steps of data-dependent operators leave them for the
 * host at the beginning of their workspace: HN_COUNTED_RANK numbers an output, one more than the dimension, 0
 * where it is what it is at most. */
#ifndef HN_COUNTED_ARGS_H
#define HN_COUNTED_ARGS_H

enum {
  HN_COUNTED_RANK = 8,
  HN_COUNTED_OUTPUTS = 4,
  HN_COUNTED_BYTES = HN_COUNTED_RANK * HN_COUNTED_OUTPUTS * 8
};

#endif
