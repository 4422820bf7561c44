/* The equation of Einsum, and the loops that it stands for. */
#ifndef HN_MODEL_OPS_EQUATION_H
#define HN_MODEL_OPS_EQUATION_H

#include "model/ops/common/op.h"

enum {
  HN_EINSUM_LETTERS = 52,
  HN_EINSUM_DOTS = HONE_MAX_RANK,
  HN_EINSUM_LABELS = HN_EINSUM_LETTERS + HN_EINSUM_DOTS,
  HN_EINSUM_OPERANDS = 16,
  HN_EINSUM_LOOPS = 16
};

/* Labels of one term: letters are 0..51, the ellipsis' dimensions 52.. counted from the last one backwards.
 */
typedef struct hn_einsum_term {
  int32_t n;
  uint8_t label[HONE_MAX_RANK + 1];
} hn_einsum_term;

typedef struct hn_einsum {
  uint32_t n_in;
  hn_einsum_term in[HN_EINSUM_OPERANDS], out;
  int64_t dim[HN_EINSUM_LABELS]; /* -1: unknown, -2: not used */
} hn_einsum;

/* One nest of loops: the result's labels outside, the summed ones inside. */
typedef struct hn_einsum_nest {
  int32_t rank, summed; /* loops in all, and how many of them are sums (the last ones) */
  uint32_t n;           /* operands */
  int64_t dim[HN_EINSUM_LOOPS], step[HN_EINSUM_OPERANDS][HN_EINSUM_LOOPS];
} hn_einsum_nest;

/* Reads the attribute `equation` for operands of known rank, and the sizes of its letters. */
hone_status hn_einsum_parse(const hone_node *node, const hone_tensor_desc *const *in, uint32_t n,
                            hn_einsum *e, hone_error *error);
/* The loops of an equation whose operands lie row-major and have known dimensions. */
hone_status hn_einsum_loops(const hone_node *node, const hone_tensor_desc *const *in, const hn_einsum *e,
                            hn_einsum_nest *t, hone_error *error);

#endif
