/* Tensors whose elements lie anywhere: how far they reach, and copies of them. By strides alone, in elements;
 * what a descriptor calls its layout is not read. */
#ifndef HN_BASE_STRIDED_H
#define HN_BASE_STRIDED_H

#include <hone/tensor.h>

/* Bytes from the first to one past the last element; -1: a dimension is unknown, a stride negative, or it is
 * too large. */
int64_t hn_strided_bytes(const hone_tensor_desc *desc);
/* Bytes of memory that holds a tensor: with its padding, and where its elements lie further apart (a part of
 * another) up to the last one. */
int64_t hn_strided_memory(const hone_tensor_desc *desc);
/* Are two elements at one place? Never for row-major ones. May say so of odd strides that keep them apart. */
bool hn_strided_shares(const hone_tensor_desc *desc);
/* Row after row without a gap; what strides say of dimensions of size 1 does not matter. */
bool hn_strided_dense(const hone_tensor_desc *desc);
/* Both of the same type and dimensions. */
void hn_strided_copy(const hone_tensor *from, const hone_tensor *to);

#endif
