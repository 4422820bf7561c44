/* What RotaryEmbedding and MRotaryEmbedding of com.microsoft have in common: ONNX's operator within. */
#ifndef HN_MODEL_OPS_MICROSOFT_ROTARY_INNER_H
#define HN_MODEL_OPS_MICROSOFT_ROTARY_INNER_H

#include "model/ops/microsoft/common/inner.h"

extern const hone_op_desc hn_op_rotary_embedding;

/* Attributes that are read by nobody are refused unless they say nothing. */
static inline hone_status hn_rotary_check(const hone_node *n, hone_error *error) {
  if (hone_node_int(n, "is_packed_batching", 0)) return hn_op_refuse(n, error, "is_packed_batching");
  return hone_node_float(n, "scale", 1) == 1 ? HONE_OK : hn_op_refuse(n, error, "scale");
}

/* Its attributes for ONNX's; the number of heads is 0 where it is not known yet. */
static inline void hn_rotary_begin(hn_inner *inner, const hone_node *n, const hone_tensor_desc *x,
                                   const hone_tensor_desc *cos) {
  int64_t heads = hone_node_int(n, "num_heads", 0);
  const int64_t hidden = hn_dim(x, 2), half = hn_dim(cos, 1);
  if (!heads && x->rank == 3 && hidden > 0 && half > 0) heads = hidden / (2 * half);
  hn_inner_begin(inner, n, &hn_op_rotary_embedding, 23);
  hn_inner_int(inner, "interleaved", hone_node_int(n, "interleaved", 0));
  hn_inner_int(inner, "num_heads", heads);
  hn_inner_int(inner, "rotary_embedding_dim", hone_node_int(n, "rotary_embedding_dim", 0));
}

#endif
