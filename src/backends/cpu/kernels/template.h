/* Helpers of the kernel templates. */
#ifndef HN_KERNELS_TEMPLATE_H
#define HN_KERNELS_TEMPLATE_H

#include "base/fault.h"

/* Full unrolling of loops with constant bounds, early enough that small arrays become registers. */
#if defined(__clang__)
#define HN_UNROLL _Pragma("clang loop unroll(full)")
#else
#define HN_UNROLL _Pragma("GCC unroll 32")
#endif

#endif
