/* N-grams as tf_idf.cu reads them from the blob: their number, the grams, and behind them the pool of tokens
 * (i64). */
#ifndef HN_CUDA_TF_IDF_ARGS_H
#define HN_CUDA_TF_IDF_ARGS_H

#include "types.h"

typedef struct hn_gram {
  i64 at; /* of its first token in the pool */
  i32 length, output;
  float weight;
  i32 none;
} hn_gram;

#endif
