/* CenterCropPad: cuts or pads with zeros about the centre to a given size; an odd difference favours the
 * beginning. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/move.h"

/* Target size of every dimension from the values of `shape`; those it does not name stay. */
static hone_status target(const hone_node *node, const hone_tensor_desc *x, const int64_t *shape, int64_t n,
                          int64_t *dims, hone_error *error) {
  size_t count = 0;
  const int64_t *axes = hone_node_ints(node, "axes", &count);
  if (n != (count ? (int64_t)count : x->rank))
    return hn_op_bad(node, error, "shape has %lld values, expected %lld", (long long)n,
                     count ? (long long)count : (long long)x->rank);
  for (int32_t d = 0; d < x->rank; d++) dims[d] = x->dim[d];
  for (int64_t i = 0; i < n; i++) {
    int32_t axis = (int32_t)i;
    hone_status s = count ? hn_axis(axes[i], x->rank, &axis, error) : HONE_OK;
    if (s) return s;
    if (shape && shape[i] < 0) return hn_op_bad(node, error, "shape holds %lld", (long long)shape[i]);
    dims[axis] = shape ? shape[i] : HONE_DIM_UNKNOWN;
  }
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  int64_t shape[HONE_MAX_RANK], dims[HONE_MAX_RANK];
  hone_status s = hn_infer_dtype_in(io, 1, HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_I64), error);
  if (s) return s;
  if (x->rank < 0) return hn_infer_set(io, 0, x->dtype, -1, NULL), HONE_OK;
  int64_t n = hn_infer_ints(io, 1, shape, HONE_MAX_RANK);
  if (n == -2) return hn_op_bad(io->node, error, "shape has too many values");
  if (n == -1) {
    size_t count = 0;
    hone_node_ints(io->node, "axes", &count);
    s = target(io->node, x, NULL, count ? (int64_t)count : x->rank, dims, error);
  } else {
    s = target(io->node, x, shape, n, dims, error);
  }
  if (s) return s;
  hn_infer_set(io, 0, x->dtype, x->rank, dims);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  size_t size = hone_dtype_size(x->desc.dtype);
  int32_t rank = x->desc.rank;
  int64_t in_step[HONE_MAX_RANK], out_step[HONE_MAX_RANK], n[HONE_MAX_RANK], from = 0, to = 0;
  (void)error;
  memset(y->data, 0, (size_t)hone_desc_bytes(&y->desc));
  hn_strides(x->desc.dim, rank, in_step);
  hn_strides(y->desc.dim, rank, out_step);
  for (int32_t d = 0; d < rank; d++) {
    const int64_t in = x->desc.dim[d], out = y->desc.dim[d];
    n[d] = hn_min(in, out);
    if (n[d] == 0) return HONE_OK;
    if (in > out) from += (in - out) / 2 * in_step[d];
    if (out > in) to += (out - in) / 2 * out_step[d];
  }
  hn_move((char *)y->data + (size_t)to * size, out_step, (const char *)x->data + (size_t)from * size, in_step,
          n, rank, size);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{"axes", HONE_ATTR_INTS, false, 0, 0}, {0}};

HN_OP(center_crop_pad) = {
    HN_OP_HEAD,      .op_type = "CenterCropPad", .since = 18,           .flags = HONE_OP_MOVE,
    HN_INPUTS(2, 2), HN_OUTPUTS(1, 1),           .types = HN_TYPES_ALL, .attrs = attrs,
    .infer = infer,  .reference = reference,     .host_inputs = 1u << 1};
