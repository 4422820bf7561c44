/* Loop nests over several tensors at once: the common form of everything that walks tensors element by
 * element (pointwise programs, copies, transposes). Dimensions are ordered by the first operand's strides,
 * sizes of 1 are dropped and neighbours that all operands step through evenly are merged, so most nests end
 * with rank 1 or 2. */
#ifndef HN_BASE_NEST_H
#define HN_BASE_NEST_H

#include <hone/tensor.h>

enum { HN_NEST_RANK = 12, HN_NEST_OPERANDS = 20 };

typedef struct hn_nest {
  int32_t rank; /* 1 at least; the last dimension is the innermost */
  int32_t n;    /* operands */
  int64_t dim[HN_NEST_RANK];
  int64_t stride[HN_NEST_OPERANDS][HN_NEST_RANK]; /* in elements; 0: the operand is broadcast */
} hn_nest;

/* Starts a nest with the given dimensions and no operands. */
void hn_nest_begin(hn_nest *nest, int32_t rank, const int64_t *dim);
/* Adds an operand with its strides in the order of the dimensions. */
void hn_nest_add(hn_nest *nest, const int64_t *stride);
/* Adds a tensor whose dimensions broadcast to those of the nest as in ONNX. False: they do not. */
bool hn_nest_add_broadcast(hn_nest *nest, const hone_tensor_desc *desc);
/* Orders and merges the dimensions. */
void hn_nest_finish(hn_nest *nest);
/* Number of elements. */
int64_t hn_nest_count(const hn_nest *nest);
/* Offset of operand k at `row`, counting through the dimensions outside the `inner` innermost ones. */
int64_t hn_nest_offset(const hn_nest *nest, int32_t k, int64_t row, int32_t inner);

#endif
