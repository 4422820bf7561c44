/* MaxPool, AveragePool and LpPool (pooling/pool.cu). */
#ifndef HN_CUDA_POOLING_POOLING_H
#define HN_CUDA_POOLING_POOLING_H

#include "backends/tactic.h"

typedef enum hn_cuda_pooling { HN_CUDA_POOL_MAX, HN_CUDA_POOL_AVERAGE, HN_CUDA_POOL_LP } hn_cuda_pooling;

typedef struct hn_cuda_pooling_config {
  hn_cuda_pooling kind;
} hn_cuda_pooling_config;

HN_FAMILY_PLAIN(hn_cuda_pooling);

#define hn_cuda_pooling_tactic(NAME, ANCHOR, ...)                                                            \
  HN_TACTIC_PLAIN(cuda, NAME, ANCHOR, 1, hn_cuda_pooling, __VA_ARGS__)

#endif
