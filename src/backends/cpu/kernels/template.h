/* Helpers of the kernel templates. */
#ifndef HN_KERNELS_TEMPLATE_H
#define HN_KERNELS_TEMPLATE_H

#include "base/fault.h"

/* Full unrolling of loops with constant bounds, early enough that small arrays become registers; and none,
 * for loops that hardly turn. */
#if defined(HN_INSTRUMENTED) /* what sanitizers watch is the same in loops, which compile in a part of the   \
                                time */
#define HN_UNROLL
#define HN_ROLLED
#elif defined(__clang__)
#define HN_UNROLL _Pragma("clang loop unroll(full)")
#define HN_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define HN_UNROLL _Pragma("GCC unroll 32")
#define HN_ROLLED _Pragma("GCC unroll 1")
#endif

#endif
