/* MaxPool, AveragePool and LpPool (pooling/pool.cu). */
#ifndef HN_CUDA_POOLING_POOLING_H
#define HN_CUDA_POOLING_POOLING_H

#include "backends/tactic.h"

typedef enum hn_cuda_pooling { HN_CUDA_POOL_MAX, HN_CUDA_POOL_AVERAGE, HN_CUDA_POOL_LP } hn_cuda_pooling;

typedef struct hn_cuda_pooling_config {
  hn_cuda_pooling kind;
} hn_cuda_pooling_config;

bool hn_cuda_pooling_accepts(const hone_step *s, const hone_machine *m, const hn_cuda_pooling_config *config,
                             hone_reason *why);
double hn_cuda_pooling_cost(const hone_step *s, const hone_machine *m, const hn_cuda_pooling_config *config);
hone_status hn_cuda_pooling_run(const hone_step_run *r, const hn_cuda_pooling_config *config,
                                hone_error *error);

#define hn_cuda_pooling_tactic(NAME, ANCHOR, ...)                                                            \
  HN_TACTIC_PLAIN(cuda, NAME, ANCHOR, 1, hn_cuda_pooling, __VA_ARGS__)

#endif
