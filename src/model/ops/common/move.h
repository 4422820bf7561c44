/* Moving elements of any dtype between strided places: what Transpose, Slice, Concat, Expand, Tile, Pad...
 * are. */
#ifndef HN_MODEL_OPS_MOVE_H
#define HN_MODEL_OPS_MOVE_H

#include "model/ops/common/op.h"

#define HN_MOVE_RANK (2 * HONE_MAX_RANK)

/* For every index of dim[rank]: dst[sum index * dst_stride] = src[sum index * src_stride]. Strides are in
 * elements of `size` bytes and may be zero (source) or negative; regions must not overlap. rank <=
 * HN_MOVE_RANK. */
void hn_move(void *dst, const int64_t *dst_stride, const void *src, const int64_t *src_stride,
             const int64_t *dim, int32_t rank, size_t size);
/* Row-major strides of dim[rank]. */
void hn_strides(const int64_t *dim, int32_t rank, int64_t *stride);
/* Copies src into all of dst's dimensions by numpy's broadcasting rules (they fit: inference has checked it).
 */
void hn_expand(hone_tensor *dst, const hone_tensor_desc *src_desc, const void *src);
/* n elements of `size` bytes, all equal to *value. */
void hn_fill(void *dst, const void *value, int64_t n, size_t size);

/* dim[from..to) multiplied; -1 on overflow or unknown dimensions. */
int64_t hn_product(const int64_t *dim, int32_t from, int32_t to);

#endif
