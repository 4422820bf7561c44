/* Gather: slices of the input along one axis, picked by indices (negative ones count from the end). */
#include "model/ops/common/convert.h"
#include "model/ops/common/index.h"
#include "model/ops/common/move.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *index = io->input[1];
  hone_status status = hn_infer_indices(io, 1, error);
  if (status) return status;
  hone_tensor_desc y = {.dtype = x->dtype, .rank = -1};
  int32_t axis;
  if (x->rank >= 0) {
    status = hn_axis(hone_node_int(io->node, "axis", 0), x->rank, &axis, error);
    if (status) return status;
    if (index->rank >= 0) {
      if (x->rank - 1 + index->rank > HONE_MAX_RANK)
        return hn_op_refuse(io->node, error, "rank %d", x->rank - 1 + index->rank);
      y.rank = 0;
      for (int32_t i = 0; i < axis; i++) y.dim[y.rank++] = x->dim[i];
      for (int32_t i = 0; i < index->rank; i++) y.dim[y.rank++] = index->dim[i];
      for (int32_t i = axis + 1; i < x->rank; i++) y.dim[y.rank++] = x->dim[i];
    }
  }
  hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0], *index = call->input[1];
  int32_t axis;
  hone_status status = hn_axis(hone_node_int(call->node, "axis", 0), x->desc.rank, &axis, error);
  if (status) return status;
  int64_t outer = hn_product(x->desc.dim, 0, axis), inner = hn_product(x->desc.dim, axis + 1, x->desc.rank);
  int64_t dim = x->desc.dim[axis], n = hn_count(index);
  size_t block = (size_t)inner * hone_dtype_size(x->desc.dtype);
  char *to = call->output[0]->data;
  for (int64_t j = 0; j < n; j++) { /* all are checked, even when nothing is copied */
    int64_t i;
    status = hn_index(call->node, hn_get_i64(index, j), dim, &i, error);
    if (status) return status;
  }
  for (int64_t o = 0; o < outer; o++) {
    const char *from = (const char *)x->data + (size_t)(o * dim) * block;
    status = hn_call_check(call, error);
    if (status) return status;
    for (int64_t j = 0; j < n && block; j++, to += block) {
      int64_t i = hn_get_i64(index, j);
      memcpy(to, from + (size_t)(i < 0 ? i + dim : i) * block, block);
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "axis", .type = HONE_ATTR_INT}, {0}};

HN_OP(gather) = {HN_OP_HEAD,
                 .op_type = "Gather",
                 .since = 1,
                 .flags = HONE_OP_MOVE,
                 HN_INPUTS(2, 2),
                 HN_OUTPUTS(1, 1),
                 .types = HN_TYPES_ALL,
                 .attrs = attrs,
                 .infer = infer,
                 .reference = reference,
                 .layouts = HONE_LAST_ALLOWED};
