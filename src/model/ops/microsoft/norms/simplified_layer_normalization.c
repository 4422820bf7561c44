/* SimplifiedLayerNormalization, ONNX Runtime's in ONNX's own domain: RMSNormalization, and 1 / sqrt(mean(x^2)
 * + epsilon) as second output. */
#include "model/ops/microsoft/common/inner.h"
#include "model/ops/normalize/moments.h"

extern const hone_op_desc hn_op_rms_normalization;

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  hn_inner rms;
  int64_t dims[HONE_MAX_RANK];
  int32_t axis = 0;
  hn_inner_same(&rms, io->node, &hn_op_rms_normalization, 23);
  hone_infer first = *io;
  first.n_outputs = 1;
  hone_status s = hn_inner_infer(&first, &rms, error);
  if (!s && x->rank > 0) s = hn_axis(hone_node_int(io->node, "axis", -1), x->rank, &axis, error);
  if (s) return s;
  for (int32_t d = 0; d < x->rank; d++) dims[d] = d < axis ? x->dim[d] : 1;
  hn_infer_set(io, 1, HONE_DTYPE_F32, x->rank, dims);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 4 * hn_known_count(io->input[0]));
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hn_inner rms;
  int32_t axis;
  hn_inner_same(&rms, call->node, &hn_op_rms_normalization, 23);
  hone_status s = call->output[0]
                      ? hn_inner_run(call, &rms, call->input, call->n_inputs, call->output, 1, error)
                      : HONE_OK;
  if (s || call->n_outputs < 2 || !call->output[1]) return s;
  if ((s = hn_axis(hone_node_int(call->node, "axis", -1), x->desc.rank, &axis, error))) return s;
  const int64_t n = hn_dims(&x->desc, axis, x->desc.rank), rows = hn_count(call->output[1]);
  const double epsilon = (double)hone_node_float(call->node, "epsilon", 1e-5f);
  double *row = hn_scratch(call, n, sizeof *row, error);
  if (!row) return HONE_ERROR_MEMORY;
  for (int64_t o = 0; o < rows; o++) {
    hn_load_f64(row, x, o * n, n);
    hn_set_f64(call->output[1], o,
               1 / sqrt(hn_mean_square(row, n, hn_stash(call->node, x->desc.dtype)) + epsilon));
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "axis", .type = HONE_ATTR_INT},
                                       {.name = "epsilon", .type = HONE_ATTR_FLOAT},
                                       {.name = "stash_type", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(simplified_layer_normalization) = {HN_OP_HEAD,       .op_type = "SimplifiedLayerNormalization",
                                         .since = 1,       HN_INPUTS(2, 2),
                                         HN_OUTPUTS(1, 2), .types = HN_TYPES_FLOAT,
                                         .attrs = attrs,   .infer = infer,
                                         .cost = cost,     .reference = reference};
