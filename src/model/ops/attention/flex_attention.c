/* FlexAttention: attention whose scores and weights go through graphs of the model's own. Opened as soon as
 * types are known (model/open_flex.c), so that nothing runs it. */
#include "model/ops/common/bulk.h"

enum { Q, K, V };

static bool differ(int64_t a, int64_t b) { return a >= 0 && b >= 0 && a != b; }

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *q = io->input[Q], *k = io->input[K], *v = io->input[V];
  int64_t dim[4];
  hone_status s = hn_infer_same_dtype(io, Q, K, error);
  if (!s) s = hn_infer_same_dtype(io, Q, V, error);
  for (uint32_t i = Q; i <= V && !s; i++)
    if (io->input[i]->rank >= 0 && io->input[i]->rank != 4)
      s = hn_op_bad(io->node, error, "input %u has rank %d, not 4", i, (int)io->input[i]->rank);
  if (s) return s;
  for (int32_t i = 0; i < 3; i++) dim[i] = q->rank == 4 ? q->dim[i] : HONE_DIM_UNKNOWN;
  dim[3] = v->rank == 4 ? v->dim[3] : HONE_DIM_UNKNOWN;
  if (q->rank == 4 && k->rank == 4 && (differ(q->dim[0], k->dim[0]) || differ(q->dim[3], k->dim[3])))
    return hn_op_bad(io->node, error, "Q and K differ in their batches or the size of their heads");
  if (k->rank == 4 && v->rank == 4)
    for (int32_t i = 0; i < 3; i++)
      if (differ(k->dim[i], v->dim[i]))
        return hn_op_bad(io->node, error, "dimension %d of K is %lld, of V %lld", (int)i,
                         (long long)k->dim[i], (long long)v->dim[i]);
  hn_infer_set(io, 0, q->dtype, 4, dim);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "scale", .type = HONE_ATTR_FLOAT},
                                       {.name = "softmax_precision", .type = HONE_ATTR_INT},
                                       {.name = "score_mod", .type = HONE_ATTR_GRAPH},
                                       {.name = "prob_mod", .type = HONE_ATTR_GRAPH},
                                       {0}};

HN_OP(flex_attention) = {HONE_DESC_HEAD(hone_op_desc),
                         .domain = "ai.onnx.preview",
                         .op_type = "FlexAttention",
                         .since = 1,
                         .flags = HONE_OP_CONTROL,
                         HN_INPUTS(3, 3),
                         HN_OUTPUTS(1, 1),
                         .types = HN_TYPES_FLOAT,
                         .attrs = attrs,
                         .infer = infer};
