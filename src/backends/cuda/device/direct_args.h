/* Arguments of kernels that follow an operator's definition (device/direct.cuh); each text says what p and f
 * hold. */
#ifndef HN_DIRECT_ARGS_H
#define HN_DIRECT_ARGS_H

#include "types.h"

enum { HN_DIRECT_INPUTS = 9, HN_DIRECT_OUTPUTS = 4, HN_DIRECT_NUMBERS = 48, HN_DIRECT_REALS = 14 };

typedef struct hn_direct_args {
  const void *in[HN_DIRECT_INPUTS]; /* NULL: left out */
  void *out[HN_DIRECT_OUTPUTS];     /* NULL: not wanted */
  void *work;                       /* the step's workspace */
  const void *blob;                 /* what was packed for the step */
  void *refused;                    /* where a kernel leaves `node` when it meets what it cannot do */
  u64 node;
  i64 count; /* of threads or of blocks, below 2^31 */
  i64 turn;  /* of a launch that is repeated: which of them this is */
  i64 p[HN_DIRECT_NUMBERS];
  double f[HN_DIRECT_REALS];
} hn_direct_args;

#endif
