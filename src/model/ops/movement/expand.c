/* Expand: the input broadcast with a shape; where the shape says 1 the input's dimension stays. */
#include "model/ops/common/axes.h"
#include "model/ops/common/move.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *s = io->input[1];
  hn_list shape;
  hone_status status = hn_list_infer(io, "", 0, 1, &shape, error);
  if (status) return status;
  hone_tensor_desc y = *x, with = {.dtype = x->dtype, .rank = -1};
  if (shape.known) {
    if (shape.n > HONE_MAX_RANK) return hn_op_refuse(io->node, error, "rank %d", shape.n);
    with.rank = shape.n;
    for (int32_t i = 0; i < shape.n; i++) {
      if (shape.at[i] < 0)
        return hn_op_bad(io->node, error, "dimension %d is %lld", i, (long long)shape.at[i]);
      with.dim[i] = shape.at[i];
    }
    status = hn_broadcast_dims(&y, &with, error);
    if (status) return status;
  } else { /* which dimensions grow is open */
    bool ranked = x->rank >= 0 && s->rank == 1 && s->dim[0] >= 0 && s->dim[0] <= HONE_MAX_RANK;
    y.rank = !ranked ? -1 : s->dim[0] > x->rank ? (int32_t)s->dim[0] : x->rank;
    for (int32_t i = 0; i < y.rank; i++) {
      int32_t j = i - (y.rank - x->rank);
      y.dim[i] = j >= 0 && x->dim[j] > 1 ? x->dim[j] : HONE_DIM_UNKNOWN;
    }
  }
  hn_infer_set(io, 0, x->dtype, y.rank, y.dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  (void)error;
  hn_expand(call->output[0], &call->input[0]->desc, call->input[0]->data);
  return HONE_OK;
}

HN_OP(expand) = {
    HN_OP_HEAD,       .op_type = "Expand",   .since = 8,     .flags = HONE_OP_MOVE,  HN_INPUTS(2, 2),
    HN_OUTPUTS(1, 1), .types = HN_TYPES_ALL, .infer = infer, .reference = reference, .host_inputs = 1u << 1};
