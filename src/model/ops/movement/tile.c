/* Tile: the input repeated along every dimension. */
#include "model/ops/common/axes.h"
#include "model/ops/common/convert.h"
#include "model/ops/common/move.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_tensor_desc y = *io->input[0];
  hn_list repeats;
  hone_status status = hn_list_infer(io, "", 0, 1, &repeats, error);
  if (status) return status;
  if (y.rank >= 0 && repeats.known && repeats.n != y.rank)
    return hn_op_bad(io->node, error, "%d repeats for rank %d", repeats.n, y.rank);
  for (int32_t i = 0; i < y.rank; i++) {
    if (!repeats.known)
      y.dim[i] = HONE_DIM_UNKNOWN;
    else if (repeats.at[i] < 0)
      return hn_op_bad(io->node, error, "repeat %d is %lld", i, (long long)repeats.at[i]);
    else if (y.dim[i] < 0)
      y.dim[i] = repeats.at[i] == 1 ? y.dim[i] : repeats.at[i] == 0 ? 0 : HONE_DIM_UNKNOWN;
    else if (__builtin_mul_overflow(y.dim[i], repeats.at[i], &y.dim[i]))
      return hn_op_bad(io->node, error, "the result is too large");
  }
  hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  (void)error;
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  int32_t rank = x->desc.rank;
  int64_t from[HONE_MAX_RANK], to[HONE_MAX_RANK], dim[HN_MOVE_RANK], src[HN_MOVE_RANK], dst[HN_MOVE_RANK];
  if (hn_count(y) == 0) return HONE_OK;
  hn_strides(x->desc.dim, rank, from);
  hn_strides(y->desc.dim, rank, to);
  for (int32_t i = 0; i < rank; i++) { /* (repeat, place) instead of each dimension */
    dim[2 * i] = y->desc.dim[i] / x->desc.dim[i];
    src[2 * i] = 0;
    dst[2 * i] = to[i] * x->desc.dim[i];
    dim[2 * i + 1] = x->desc.dim[i];
    src[2 * i + 1] = from[i];
    dst[2 * i + 1] = to[i];
  }
  hn_move(y->data, dst, x->data, src, dim, 2 * rank, hone_dtype_size(x->desc.dtype));
  return HONE_OK;
}

HN_OP(tile) = {
    HN_OP_HEAD,       .op_type = "Tile",     .since = 6,     .flags = HONE_OP_MOVE,  HN_INPUTS(2, 2),
    HN_OUTPUTS(1, 1), .types = HN_TYPES_ALL, .infer = infer, .reference = reference, .host_inputs = 1u << 1};
