/* Indices that name one element each, along one axis. */
#include "model/ops/indexing/elements.h"
#include "model/ops/common/convert.h"
#include "model/ops/common/index.h"
#include "model/ops/common/move.h"

hone_status hn_elements_infer(const hone_infer *io, uint32_t i, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *index = io->input[i];
  hone_status status = hn_infer_indices(io, i, error);
  int32_t axis;
  if (!status && x->rank >= 0) status = hn_axis(hone_node_int(io->node, "axis", 0), x->rank, &axis, error);
  if (status || x->rank < 0 || index->rank < 0) return status;
  if (x->rank != index->rank)
    return hn_op_bad(io->node, error, "indices have rank %d, the data %d", index->rank, x->rank);
  for (int32_t d = 0; d < x->rank; d++)
    if (d != axis && x->dim[d] >= 0 && index->dim[d] > x->dim[d])
      return hn_op_bad(io->node, error, "indices have %lld elements in dimension %d, the data %lld",
                       (long long)index->dim[d], d, (long long)x->dim[d]);
  return HONE_OK;
}

hone_status hn_elements_run(hone_call *call, hn_element_visit visit, void *context, hone_error *error) {
  const hone_tensor_desc *x = &call->input[0]->desc;
  const hone_tensor *index = call->input[1];
  int32_t axis, rank = x->rank;
  int64_t step[HONE_MAX_RANK], place[HONE_MAX_RANK] = {0}, count = hn_count(index);
  hone_status status = hn_axis(hone_node_int(call->node, "axis", 0), rank, &axis, error);
  if (status) return status;
  hn_strides(x->dim, rank, step);
  int64_t at = 0; /* without the axis */
  for (int64_t i = 0; i < count; i++) {
    int64_t k;
    if (i % HN_STOP_EVERY == 0) status = hn_call_check(call, error);
    if (!status) status = hn_index(call->node, hn_get_i64(index, i), x->dim[axis], &k, error);
    if (!status) status = visit(call, context, i, at + k * step[axis], error);
    if (status) return status;
    for (int32_t d = rank - 1; d >= 0; d--) {
      if (d != axis) at += step[d];
      if (++place[d] < index->desc.dim[d]) break;
      if (d != axis) at -= step[d] * place[d];
      place[d] = 0;
    }
  }
  return HONE_OK;
}
