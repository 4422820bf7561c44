/* Walks through dimensions of two tensors at once, for kernels that treat some dimensions as rows and the
 * others as what the rows are repeated over. */
#ifndef HN_CUDA_NORMALIZE_WALK_H
#define HN_CUDA_NORMALIZE_WALK_H

#include <hone/plugin.h>

#include "backends/cuda/device/walk_args.h"

/* The dimensions of x named in the bit set `which`, ordered by x's strides and merged; y: strides of the
 * other tensor along x's dimensions (NULL: all zero). dim: sizes, usually x's. False: more elements than
 * 2^31, or more dimensions than walks have. *count gets the number of elements. */
bool hn_cuda_walk(hn_walk_args *walk, int32_t rank, const int64_t *dim, const int64_t *x, const int64_t *y,
                  uint32_t which, int64_t *count, hone_reason *why);
/* Whether the innermost dimension is contiguous in x (and in y, when asked), and can be taken in vectors of
 * `width`: then walks through vectors. */
bool hn_cuda_walk_vectors(hn_walk_args *walk, int width, bool with_y, int64_t *count);

/* Strides of y along x's dimensions, where y lacks or has as 1 the dimensions in the set `axes`: 0 there. */
bool hn_cuda_reduced_strides(const hone_tensor_desc *x, const hone_tensor_desc *y, uint32_t axes,
                             int64_t *stride, hone_reason *why);

#endif
