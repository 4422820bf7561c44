/* What a generated epilogue needs at run time (step/epilogue.h writes its text and fills this). */
#ifndef HN_EPILOGUE_ARGS_H
#define HN_EPILOGUE_ARGS_H

#include "types.h"

enum { HN_EPILOGUE_INPUTS = 7 }; /* HONE_MAX_EPILOGUE and the anchor's own bias */

typedef struct hn_epilogue_args {
  const void *in[HN_EPILOGUE_INPUTS]; /* vectors and tensors in the order of the list; NULL: no operand */
  i32 channels;                       /* elements from here on are padding: they come back as zeros */
  i32 aligned;                        /* every tensor operand starts at a multiple of 16 bytes */
} hn_epilogue_args;

#endif
