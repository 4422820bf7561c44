/* Where a token's head lies: operands of attention are [batch, heads, tokens, size] or, with the number of
 * heads as an attribute, [batch, tokens, heads x size]. */
#ifndef HN_MODEL_OPS_HEADS_H
#define HN_MODEL_OPS_HEADS_H

#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

typedef struct hn_heads {
  bool packed;                        /* [batch, tokens, heads x size] */
  int64_t batch, heads, tokens, size; /* HONE_DIM_UNKNOWN or below: not known */
} hn_heads;

/* d as heads; their number in the packed form is the attribute `attr`. HONE_ERROR_INPUT when d, called
 * `name`, is neither form. */
hone_status hn_heads_of(const hone_node *node, const char *name, const hone_tensor_desc *d, const char *attr,
                        hn_heads *out, hone_error *error);

/* The first element of a token's head. All numbers must be known. */
static inline int64_t hn_heads_at(const hn_heads *h, int64_t batch, int64_t head, int64_t token) {
  const int64_t row = h->packed ? (batch * h->tokens + token) * h->heads + head
                                : (batch * h->heads + head) * h->tokens + token;
  return row * h->size;
}

#endif
