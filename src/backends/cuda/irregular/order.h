/* What texts that sort want to know (device/order.cuh). */
#ifndef HN_CUDA_IRREGULAR_ORDER_H
#define HN_CUDA_IRREGULAR_ORDER_H

#include "backends/cuda/step/direct.h"

enum { HN_CUDA_SORT_NEAR = 2048 /* entries that are sorted in shared memory */ };

/* Defines HN_KEY and HN_KIND for elements of a type; returns the bytes of a key. */
size_t hn_cuda_order(hn_cuda_direct *p, hone_dtype t);
/* The power of two that n entries fill up to. */
int64_t hn_cuda_sort_padded(int64_t n);

#endif
