/* CausalConvWithState along one dimension: as ONNX has it at opset 27, and more (see conv/). */
#include "model/ops/microsoft/common/inner.h"

extern const hone_op_desc hn_op_causal_conv_with_state;

/* What is for CUDA alone in ONNX Runtime, and other numbers of dimensions. */
static hone_status infer(const hone_infer *io, hone_error *error) {
  static const struct {
    const char *name;
    int64_t is;
  } fixed[] = {{"ndim", 1},
               {"state_length", 0},
               {"input_channels", 0},
               {"input_channel_offset", 0},
               {"state_update_capacity", 0},
               {"state_channels_last", -1}};
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
    const int64_t v = hone_node_int(io->node, fixed[i].name, fixed[i].is);
    if (v != fixed[i].is)
      return hn_op_refuse(io->node, error, "%s is %lld, only %lld is implemented", fixed[i].name,
                          (long long)v, (long long)fixed[i].is);
  }
  hn_inner n;
  hn_inner_same(&n, io->node, &hn_op_causal_conv_with_state, 27);
  return hn_inner_infer(io, &n, error);
}

static void cost(const hone_infer *io, hone_cost *c) {
  hn_inner n;
  hn_inner_same(&n, io->node, &hn_op_causal_conv_with_state, 27);
  hn_inner_cost(io, &n, c);
}

static hone_status reference(hone_call *call, hone_error *error) {
  hn_inner n;
  hn_inner_same(&n, call->node, &hn_op_causal_conv_with_state, 27);
  return hn_inner_run(call, &n, call->input, call->n_inputs, call->output, call->n_outputs, error);
}

static const hone_attr_desc attrs[] = {{.name = "activation", .type = HONE_ATTR_STRING},
                                       {.name = "ndim", .type = HONE_ATTR_INT},
                                       {.name = "dilation", .type = HONE_ATTR_INT},
                                       {.name = "channels_last", .type = HONE_ATTR_INT},
                                       {.name = "state_window", .type = HONE_ATTR_INT},
                                       {.name = "state_length", .type = HONE_ATTR_INT},
                                       {.name = "input_channels", .type = HONE_ATTR_INT},
                                       {.name = "input_channel_offset", .type = HONE_ATTR_INT},
                                       {.name = "state_update_capacity", .type = HONE_ATTR_INT},
                                       {.name = "state_channels_last", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(ms_causal_conv_with_state) = {HONE_DESC_HEAD(hone_op_desc),
                                    .domain = "com.microsoft",
                                    .op_type = "CausalConvWithState",
                                    .since = 1,
                                    HN_INPUTS(2, 4),
                                    HN_OUTPUTS(1, 2),
                                    .types = HONE_TYPES(HONE_DTYPE_F32) | HONE_TYPES(HONE_DTYPE_F16) |
                                             HONE_TYPES(HONE_DTYPE_BF16),
                                    .attrs = attrs,
                                    .infer = infer,
                                    .cost = cost,
                                    .reference = reference};
