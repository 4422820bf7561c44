/* Matrices whose columns are codes of few bits: [columns, blocks, bytes of a block], low bits first, a scale
 * and zero point for each block. */
#ifndef HN_MODEL_OPS_MICROSOFT_NBITS_H
#define HN_MODEL_OPS_MICROSOFT_NBITS_H

#include "model/ops/microsoft/common/inner.h"

typedef struct hn_nbits {
  int64_t rows, columns; /* K and N of MatMulNBits */
  int64_t bits, block, blocks;
  const int32_t *group; /* of each row, whose scale and zero point it has; NULL: the block that it lies in */
} hn_nbits;

/* Code i of a run of codes of 2, 4 or 8 bits. */
static inline uint32_t hn_nbits_code(const uint8_t *from, int64_t bits, int64_t i) {
  const int64_t each = 8 / bits;
  return (uint32_t)from[i / each] >> (i % each * bits) & ((1u << bits) - 1);
}

/* Read from the node's attributes. */
hone_status hn_nbits_of(const hone_node *node, hn_nbits *out, hone_error *error);
/* Whether codes, scales and zero points (may be NULL) have the size that the attributes say. */
hone_status hn_nbits_check(const hone_node *node, const hn_nbits *w, const hone_tensor_desc *codes,
                           const hone_tensor_desc *scales, const hone_tensor_desc *zeros, hone_error *error);
/* Whether each row's group is one of the blocks. */
bool hn_nbits_groups_fit(const hn_nbits *w, const int32_t *group);
/* Column n as floats, out[rows]. */
void hn_nbits_column(const hn_nbits *w, const hone_tensor *codes, const hone_tensor *scales,
                     const hone_tensor *zeros, int64_t n, float *out);

#endif
