/* Crop: pictures without a border (left, top, right, bottom), or with the size `scale` behind its left and
 * top. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/move.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  size_t n_border = 0, n_size = 0;
  const int64_t *border = hone_node_ints(io->node, "border", &n_border),
                *size = hone_node_ints(io->node, "scale", &n_size);
  if (n_border != 4) return hn_op_bad(io->node, error, "border has %zu values, expected 4", n_border);
  if (n_size && n_size != 2) return hn_op_bad(io->node, error, "scale has %zu values, expected 2", n_size);
  if (x->rank < 0) return hn_infer_set(io, 0, x->dtype, -1, NULL), HONE_OK;
  if (x->rank != 4) return hn_op_bad(io->node, error, "the input has rank %d", (int)x->rank);
  hone_tensor_desc y = *x;
  for (int i = 0; i < 2; i++) { /* height, width */
    const int64_t in = x->dim[2 + i], before = border[1 - i], after = border[3 - i];
    const bool small = /* no sum of them overflows */
        before >= 0 && after >= 0 && before <= INT32_MAX && after <= INT32_MAX;
    const int64_t out = !small ? -1 : n_size ? size[i] : in < 0 ? in : in - before - after;
    if (!small || (n_size && out < 0) || (in >= 0 && (out < 0 || out > in - before)))
      return hn_op_bad(io->node, error, "a border of %lld and %lld%s does not fit %lld", (long long)before,
                       (long long)after, n_size ? " with scale" : "", (long long)in);
    y.dim[2 + i] = out < 0 ? HONE_DIM_UNKNOWN : out;
  }
  hn_infer_set(io, 0, x->dtype, 4, y.dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const hone_tensor *y = call->output[0];
  const size_t size = hone_dtype_size(x->desc.dtype);
  size_t n = 0;
  const int64_t *border = hone_node_ints(call->node, "border", &n);
  int64_t in[4], out[4];
  (void)error;
  if (!hn_count(y)) return HONE_OK;
  hn_strides(x->desc.dim, 4, in);
  hn_strides(y->desc.dim, 4, out);
  const int64_t from = border[1] * in[2] + border[0];
  hn_move(y->data, out, (const char *)x->data + (size_t)from * size, in, y->desc.dim, 4, size);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "border", .type = HONE_ATTR_INTS, .required = true},
                                       {.name = "scale", .type = HONE_ATTR_INTS},
                                       {0}};

HN_OP(crop) = {HN_OP_HEAD,       .op_type = "Crop",       .since = 1,
               .until = 9,       .flags = HONE_OP_MOVE,   HN_INPUTS(1, 1),
               HN_OUTPUTS(1, 1), .types = HN_TYPES_FLOAT, .attrs = attrs,
               .infer = infer,   .reference = reference};
