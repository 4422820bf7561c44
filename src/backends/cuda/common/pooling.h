/* MaxPool, AveragePool and LpPool (tactics/pool.cu). */
#ifndef HN_CUDA_COMMON_POOLING_H
#define HN_CUDA_COMMON_POOLING_H

#include "backends/cuda/common/tactic.h"

typedef enum hn_cuda_pooling { HN_CUDA_POOL_MAX, HN_CUDA_POOL_AVERAGE, HN_CUDA_POOL_LP } hn_cuda_pooling;

bool hn_cuda_pooling_accepts(const hone_step *s, hone_reason *why);
double hn_cuda_pooling_cost(const hone_step *s, const hone_machine *m);
hone_status hn_cuda_pooling_run(const hone_step_run *r, hn_cuda_pooling kind, hone_error *error);

#define HN_CUDA_POOLING(nm, op, kind)                                                                        \
  static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {                         \
    (void)m;                                                                                                 \
    return hn_cuda_pooling_accepts(s, why);                                                                  \
  }                                                                                                          \
  static hone_status run(const hone_step_run *r, hone_error *e) { return hn_cuda_pooling_run(r, kind, e); }  \
  HN_CUDA_TACTIC_DESC(nm, op, .accepts = accepts, .cost = hn_cuda_pooling_cost, .run = run)

#endif
