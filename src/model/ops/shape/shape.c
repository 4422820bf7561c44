/* Shape: the dimensions from `start` to `end` as i64. */
#include "model/ops/common/op.h"

static void bounds(const hone_node *node, int32_t rank, int64_t *start, int64_t *end) {
  *start = hone_node_int(node, "start", 0);
  *end = hone_node_int(node, "end", rank);
  int64_t *v[2] = {start, end};
  for (int i = 0; i < 2; i++) {
    if (*v[i] < 0) *v[i] = *v[i] < -rank ? 0 : *v[i] + rank;
    if (*v[i] > rank) *v[i] = rank;
  }
  if (*end < *start) *end = *start;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  (void)error;
  int64_t n = HONE_DIM_UNKNOWN, start, end;
  if (io->input[0]->rank >= 0) {
    bounds(io->node, io->input[0]->rank, &start, &end);
    n = end - start;
  }
  hn_infer_set(io, 0, HONE_DTYPE_I64, 1, &n);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  (void)error;
  const hone_tensor_desc *x = &call->input[0]->desc;
  int64_t start, end;
  bounds(call->node, x->rank, &start, &end);
  for (int64_t i = start; i < end; i++) ((int64_t *)call->output[0]->data)[i - start] = x->dim[i];
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "start", .type = HONE_ATTR_INT, .since = 15},
                                       {.name = "end", .type = HONE_ATTR_INT, .since = 15},
                                       {0}};

HN_OP(shape) = {HN_OP_HEAD,
                .op_type = "Shape",
                .since = 1,
                .flags = HONE_OP_MOVE | HONE_OP_SHAPE_ONLY,
                HN_INPUTS(1, 1),
                HN_OUTPUTS(1, 1),
                .types = HN_TYPES_ALL | HN_TYPES_NARROW,
                .attrs = attrs,
                .infer = infer,
                .reference = reference};
