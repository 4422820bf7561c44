/* NonZero and Compress (tactics/collect.cu). */
#ifndef HN_CUDA_COMMON_COLLECT_H
#define HN_CUDA_COMMON_COLLECT_H

#include "backends/cuda/common/direct.h"

/* Kernels that find which of `n` elements of input `mask` are wanted, and where each of them goes. */
void hn_cuda_collect(hn_cuda_direct *p, int mask, int64_t n);

#endif
