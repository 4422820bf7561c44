/* ImageScaler: scale x + bias of the channel. */
#include "model/ops/common/bulk.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  size_t n = 0;
  hone_node_floats(io->node, "bias", &n);
  if (x->rank >= 0 && x->rank != 4) return hn_op_bad(io->node, error, "the input has rank %d", (int)x->rank);
  if (x->rank == 4 && x->dim[1] >= 0 && x->dim[1] != (int64_t)n)
    return hn_op_bad(io->node, error, "bias has %zu values for %lld channels", n, (long long)x->dim[1]);
  return hn_infer_same(io, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  size_t many = 0;
  const float *bias = hone_node_floats(call->node, "bias", &many);
  const double scale = hone_node_float(call->node, "scale", 1);
  const int64_t n = x->desc.dim[2] * x->desc.dim[3], rows = n ? hn_count(x) / n : 0;
  double *row = hn_scratch(call, n, sizeof *row, error);
  if (!row) return HONE_ERROR_MEMORY;
  for (int64_t r = 0; r < rows; r++) {
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    hn_load_f64(row, x, r * n, n);
    for (int64_t i = 0; i < n; i++) row[i] = scale * row[i] + bias[r % x->desc.dim[1]];
    hn_store_f64(call->output[0], r * n, row, n);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "scale", .type = HONE_ATTR_FLOAT},
                                       {.name = "bias", .type = HONE_ATTR_FLOATS, .required = true},
                                       {0}};

HN_OP(image_scaler) = {
    HN_OP_HEAD,       .op_type = "ImageScaler", .since = 1,     .until = 9,     HN_INPUTS(1, 1),
    HN_OUTPUTS(1, 1), .types = HN_TYPES_FLOAT,  .attrs = attrs, .infer = infer, .reference = reference};
