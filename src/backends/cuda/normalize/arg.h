/* ArgMax and ArgMin (normalize/arg.cu). */
#ifndef HN_CUDA_NORMALIZE_ARG_H
#define HN_CUDA_NORMALIZE_ARG_H

#include "backends/tactic.h"

typedef struct hn_cuda_arg_config {
  bool largest;
} hn_cuda_arg_config;

bool hn_cuda_arg_accepts(const hone_step *s, const hone_machine *m, const hn_cuda_arg_config *config,
                         hone_reason *why);
double hn_cuda_arg_cost(const hone_step *s, const hone_machine *m, const hn_cuda_arg_config *config);
hone_status hn_cuda_arg_run(const hone_step_run *r, const hn_cuda_arg_config *config, hone_error *error);

#define hn_cuda_arg_tactic(NAME, ANCHOR, ...) HN_TACTIC_PLAIN(cuda, NAME, ANCHOR, 1, hn_cuda_arg, __VA_ARGS__)

#endif
