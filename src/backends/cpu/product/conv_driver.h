/* One driver for everything that is a sum over taps of (pixel x matrix): Conv of 1 to 3 dimensions, Gemm and
 * MatMul (one tap), and the phases of ConvTranspose.  It walks tiles of output pixels and panels of output
 * channels, brings the tile's input rows together where they are not already a matrix, and calls the family
 * "gemm" kernels.
 *
 * All blocking is decided by hn_conv_plan, once (conv_plan.h); hn_conv_exec allocates nothing. */
#ifndef HN_CPU_PRODUCT_CONV_DRIVER_H
#define HN_CPU_PRODUCT_CONV_DRIVER_H

#include "backends/cpu/product/conv_plan.h"

void hn_conv_exec(const hn_conv_args *a, hn_parallel_fn parallel, void *pool);

/* One task's share, for drivers that do their own division (batched MatMul): all tiles of [t0, t1), columns
 * [n0, n1). */
void hn_conv_block(const hn_conv_args *a, int64_t group, int64_t t0, int64_t t1, int64_t n0, int64_t n1,
                   float *scratch);

#endif
