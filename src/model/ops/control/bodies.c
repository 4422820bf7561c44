/* Inference of control flow (bodies.h). */
#include "model/ops/control/bodies.h"

#include "model/ir/graph.h"

static const hn_graph *body(const hone_node *node, const char *attr) {
  const hn_attr *a = hn_node_attr(node, attr);
  return a && a->type == HONE_ATTR_GRAPH ? a->g : NULL;
}

int64_t hn_body_outputs(const hone_node *node, const char *attr) {
  const hn_graph *g = body(node, attr);
  return g ? (int64_t)g->outputs.len : -1;
}

bool hn_body_fits(const hone_node *node, const char *attr) {
  const hn_graph *g = body(node, attr);
  return g && !g->unfit;
}

const hone_tensor_desc *hn_body_output(const hone_node *node, const char *attr, uint32_t i) {
  const hn_graph *g = body(node, attr);
  return g && i < g->outputs.len ? &g->outputs.ptr[i]->desc : NULL;
}

hone_status hn_desc_either(const hone_node *node, const hone_tensor_desc *a, const hone_tensor_desc *b,
                           hone_tensor_desc *out, hone_error *error) {
  *out =
      (hone_tensor_desc){.dtype = a->dtype ? a->dtype : b->dtype, .rank = a->rank == b->rank ? a->rank : -1};
  if (a->dtype && b->dtype && a->dtype != b->dtype)
    return hn_op_bad(node, error, "a value is %s on one path and %s on the other", hone_dtype_name(a->dtype),
                     hone_dtype_name(b->dtype));
  for (int32_t d = 0; d < out->rank; d++) out->dim[d] = a->dim[d] == b->dim[d] ? a->dim[d] : HONE_DIM_UNKNOWN;
  return HONE_OK;
}

hone_status hn_infer_stacked(const hone_infer *io, uint32_t i, const hone_tensor_desc *each, int64_t axis,
                             int64_t length, hone_error *error) {
  int64_t dims[HONE_MAX_RANK];
  int32_t at;
  if (!hone_dtype_is_tensor(each->dtype))
    return hn_op_bad(io->node, error, "a scan output is %s", hone_dtype_name(each->dtype));
  if (each->rank < 0) return hn_infer_set(io, i, each->dtype, -1, NULL), HONE_OK;
  if (each->rank + 1 > HONE_MAX_RANK)
    return hn_op_refuse(io->node, error, "a result of rank %d", (int)each->rank + 1);
  hone_status s = hn_axis(axis, each->rank + 1, &at, error);
  if (s) return s;
  for (int32_t d = 0, from = 0; d <= each->rank; d++) dims[d] = d == at ? length : each->dim[from++];
  hn_infer_set(io, i, each->dtype, each->rank + 1, dims);
  return HONE_OK;
}
