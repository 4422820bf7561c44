/* cublaslt_conv1x1 with the heuristics' algorithm 2 (the first being 0), for measurements. */
#include "backends/cuda/common/lt_step.h"

HN_CUDA_TACTIC(cublaslt_conv1x1_2, "Conv", hn_lt, hn_lt_conv_of, 2);
