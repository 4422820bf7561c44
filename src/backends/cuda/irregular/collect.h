/* NonZero and Compress (irregular/collect.cu). */
#ifndef HN_CUDA_IRREGULAR_COLLECT_H
#define HN_CUDA_IRREGULAR_COLLECT_H

#include "backends/cuda/step/direct.h"

/* Kernels that find which of `n` elements of input `mask` are wanted, and where each of them goes. */
void hn_cuda_collect(hn_cuda_direct *p, int mask, int64_t n);

#endif
