/* OneHot: a new axis of `depth` elements that are `off` except `on` at the index; indices outside give `off`
 * alone. */
#include "model/ops/common/axes.h"
#include "model/ops/common/convert.h"
#include "model/ops/common/move.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *index = io->input[0], *values = io->input[2];
  hone_tensor_desc y = {.dtype = values->dtype, .rank = -1};
  int64_t n = HONE_DIM_UNKNOWN;
  const hone_tensor *depth;
  hone_status status = hn_scalar_infer(io, 1, &depth, error);
  if (status) return status;
  if (hone_desc_known(values) && hone_desc_count(values) != 2)
    return hn_op_bad(io->node, error, "values does not hold two elements");
  if (depth) {
    n = hn_get_i64(depth, 0);
    if (n < 0) return hn_op_bad(io->node, error, "depth is %lld", (long long)n);
  }
  if (index->rank >= 0) {
    int32_t axis;
    if (index->rank == HONE_MAX_RANK) return hn_op_refuse(io->node, error, "rank %d", index->rank + 1);
    status = hn_axis(hone_node_int(io->node, "axis", -1), index->rank + 1, &axis, error);
    if (status) return status;
    y.rank = index->rank + 1;
    for (int32_t i = 0; i < y.rank; i++)
      y.dim[i] = i < axis ? index->dim[i] : i == axis ? n : index->dim[i - 1];
  }
  hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *index = call->input[0];
  hone_tensor *y = call->output[0];
  int32_t axis;
  hone_status status = hn_axis(hone_node_int(call->node, "axis", -1), y->desc.rank, &axis, error);
  if (status) return status;
  size_t size = hone_dtype_size(y->desc.dtype);
  const char *off = call->input[2]->data, *on = off + size;
  int64_t depth = y->desc.dim[axis], inner = hn_product(y->desc.dim, axis + 1, y->desc.rank),
          n = hn_count(index);
  hn_fill(y->data, off, hn_count(y), size);
  for (int64_t i = 0; i < n; i++) {
    int64_t k = hn_get_i64(index, i);
    if (k < 0) k += depth;
    if (i % HN_STOP_EVERY == 0) {
      status = hn_call_check(call, error);
      if (status) return status;
    }
    if (k >= 0 && k < depth) memcpy(hn_at_mut(y, (i / inner * depth + k) * inner + i % inner), on, size);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "axis", .type = HONE_ATTR_INT}, {0}};

HN_OP(one_hot) = {HN_OP_HEAD,
                  .op_type = "OneHot",
                  .since = 9,
                  HN_INPUTS(3, 3),
                  HN_OUTPUTS(1, 1),
                  .types = HN_TYPES_NUMBER,
                  .attrs = attrs,
                  .infer = infer,
                  .reference = reference,
                  .host_inputs = 1u << 1};
