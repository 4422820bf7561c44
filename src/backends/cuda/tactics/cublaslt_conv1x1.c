/* Conv of 1x1 as a matrix product of cuBLASLt: the algorithm that its heuristics put first. */
#include "backends/cuda/common/lt_step.h"

HN_CUDA_TACTIC(cublaslt_conv1x1, "Conv", hn_lt, hn_lt_conv_of, 0);
