/* ArgMax and ArgMin (normalize/arg.cu). */
#ifndef HN_CUDA_NORMALIZE_ARG_H
#define HN_CUDA_NORMALIZE_ARG_H

#include "backends/tactic.h"

typedef struct hn_cuda_arg_config {
  bool largest;
} hn_cuda_arg_config;

HN_FAMILY_PLAIN(hn_cuda_arg);

#define hn_cuda_arg_tactic(NAME, ANCHOR, ...) HN_TACTIC_PLAIN(cuda, NAME, ANCHOR, 1, hn_cuda_arg, __VA_ARGS__)

#endif
