/* LinearAttention: a state S of [d_k, d_v] for every head, written and read token by token:
 *
 *   S = exp(decay) S             (gated, gated_delta)
 *   v = beta (v - S' k)          (delta, gated_delta)
 *   S = S + k v',  y = scale S' q
 *
 * Several heads of queries may read one state. In com.microsoft, which is as ONNX's is otherwise, several
 * states may also be written by one head of keys and read by one of queries, and the states after the last
 * tokens may be kept side by side (state_window). */
#ifndef HN_MODEL_OPS_LINEAR_H
#define HN_MODEL_OPS_LINEAR_H

#include "model/ops/common/bulk.h"

enum { HN_LINEAR_WINDOW = 8 };

typedef struct hn_linear_sizes {
  int64_t batch, tokens, q_heads, k_heads, heads, y_heads, d_k, d_v; /* heads: of states; < 0: not known */
  int64_t window;                                                    /* 0: the last state alone */
} hn_linear_sizes;

/* HONE_ERROR_INPUT where the operands do not fit each other. */
hone_status hn_linear_find(const hone_node *node, const hone_tensor_desc *q, const hone_tensor_desc *k,
                           const hone_tensor_desc *v, hn_linear_sizes *out, hone_error *error);

hone_status hn_linear_infer(const hone_infer *io, hone_error *error);
void hn_linear_cost(const hone_infer *io, hone_cost *cost);
hone_status hn_linear_reference(hone_call *call, hone_error *error);

#endif
