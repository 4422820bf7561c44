/* Tile before opset 6: the input repeated along one axis; the number and the axis are inputs, of the input's
 * own type. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"
#include "model/ops/common/move.h"

enum { X, TILES, AXIS };

/* A whole number that input i holds; -1: it does not. */
static int64_t number(const hone_tensor *t) {
  const double v = hn_count(t) == 1 ? hn_get_f64(t, 0) : -1;
  return v >= 0 && v < 0x1p40 && v == floor(v) ? (int64_t)v : -1;
}

/* The axis and how often. */
static hone_status read(const hone_node *node, const hone_tensor *const *value, int32_t rank, int32_t *axis,
                        int64_t *tiles, hone_error *error) {
  const int64_t at = number(value[AXIS]);
  *tiles = number(value[TILES]);
  if (*tiles < 0) return hn_op_bad(node, error, "tiles is no number of copies");
  if (at < 0 || at >= rank) return hn_op_bad(node, error, "axis is no dimension of %d", (int)rank);
  *axis = (int32_t)at;
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_tensor_desc y = *io->input[X];
  hone_status s = HONE_OK;
  for (uint32_t i = TILES; i <= AXIS && !s; i++) s = hn_infer_dtype_in(io, i, HN_TYPES_NUMBER, error);
  if (s) return s;
  if (y.rank >= 0 && io->value[TILES] && io->value[AXIS]) {
    int32_t axis = 0;
    int64_t tiles = 0;
    if ((s = read(io->node, io->value, y.rank, &axis, &tiles, error))) return s;
    if (y.dim[axis] >= 0 && __builtin_mul_overflow(y.dim[axis], tiles, &y.dim[axis]))
      return hn_op_bad(io->node, error, "the result is too large");
  } else
    for (int32_t i = 0; i < y.rank; i++) y.dim[i] = HONE_DIM_UNKNOWN;
  hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[X];
  hone_tensor *y = call->output[0];
  int32_t axis = 0;
  int64_t tiles = 0;
  const hone_status s = read(call->node, call->input, x->desc.rank, &axis, &tiles, error);
  if (s || hn_count(y) == 0) return s;
  const int64_t run = hn_product(x->desc.dim, axis, x->desc.rank), outer = hn_product(x->desc.dim, 0, axis);
  const size_t bytes = (size_t)run * hone_dtype_size(x->desc.dtype);
  for (int64_t o = 0; o < outer; o++) {
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    for (int64_t t = 0; t < tiles; t++)
      memcpy((char *)y->data + (size_t)(o * tiles + t) * bytes, (const char *)x->data + (size_t)o * bytes,
             bytes);
  }
  return HONE_OK;
}

HN_OP(tile_axis) = {HN_OP_HEAD,
                    .op_type = "Tile",
                    .since = 1,
                    .until = 5,
                    .flags = HONE_OP_MOVE,
                    HN_INPUTS(3, 3),
                    HN_OUTPUTS(1, 1),
                    .types = HN_TYPES_ALL,
                    .infer = infer,
                    .reference = reference,
                    .host_inputs = 1u << TILES | 1u << AXIS};
