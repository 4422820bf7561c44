/* QLinearConv of com.microsoft: ONNX's, where `channels_last` is set with the channels as last dimension. */
#include "model/ops/conv/conv_core.h"
#include "model/ops/microsoft/common/inner.h"

extern const hone_op_desc hn_op_qlinear_conv;

static bool is_last(const hone_node *n) { return hone_node_int(n, "channels_last", 0) != 0; }

static hone_status infer(const hone_infer *io, hone_error *error) {
  hn_inner conv;
  hn_inner_same(&conv, io->node, &hn_op_qlinear_conv, 10);
  return is_last(io->node) ? hn_inner_infer_last(io, &conv, error) : hn_inner_infer(io, &conv, error);
}

static void cost(const hone_infer *io, hone_cost *c) {
  const hone_tensor_desc *w = io->input[3];
  const double filters = w->rank > 0 && w->dim[0] > 0 ? (double)w->dim[0] : 1;
  hn_cost_macs(c, hn_known_count(io->output[0]) * hn_known_count(w) / filters);
}

static hone_status reference(hone_call *call, hone_error *error) {
  hn_inner conv;
  hn_inner_same(&conv, call->node, &hn_op_qlinear_conv, 10);
  return is_last(call->node) ? hn_inner_run_last(call, &conv, error)
                             : hn_inner_run(call, &conv, call->input, call->n_inputs, call->output, 1, error);
}

static const hone_attr_desc attrs[] = {HN_CONV_ATTRS, {.name = "channels_last", .type = HONE_ATTR_INT}, {0}};

static const hone_codes_port ports[] = {{0, 1, 2, HONE_CODES_AXIS_NONE},
                                        {3, 4, 5, HONE_CODES_AXIS_FIRST},
                                        {HONE_CODES_RESULT, 6, 7, HONE_CODES_AXIS_NONE},
                                        {0}};

HN_OP(ms_qlinear_conv) = {HONE_DESC_HEAD(hone_op_desc),
                          .domain = "com.microsoft",
                          .op_type = "QLinearConv",
                          .since = 1,
                          HN_INPUTS(8, 9),
                          HN_OUTPUTS(1, 1),
                          .types = HONE_TYPES(HONE_DTYPE_U8) | HONE_TYPES(HONE_DTYPE_I8),
                          .attrs = attrs,
                          .infer = infer,
                          .cost = cost,
                          .reference = reference,
                          .flags = HONE_OP_CODES,
                          .ports = ports};
