/* FusedGemm: activation(Gemm(a, b, c)). */
#include "model/ops/microsoft/activations/fused_activation.h"

extern const hone_op_desc hn_op_gemm;

static hone_status infer(const hone_infer *io, hone_error *error) {
  hn_fused_activation a;
  hn_inner gemm;
  const hone_status s = hn_fused_activation_of(io->node, &a, error);
  hn_inner_same(&gemm, io->node, &hn_op_gemm, 13);
  return s ? s : hn_inner_infer(io, &gemm, error);
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_inner gemm;
  hn_inner_same(&gemm, io->node, &hn_op_gemm, 13);
  hn_inner_cost(io, &gemm, cost);
}

static hone_status reference(hone_call *call, hone_error *error) {
  hn_inner gemm;
  hn_inner_same(&gemm, call->node, &hn_op_gemm, 13);
  const hone_status s = hn_inner_run(call, &gemm, call->input, call->n_inputs, call->output, 1, error);
  return s ? s : hn_fused_activate(call, call->output[0], error);
}

static const hone_attr_desc attrs[] = {{.name = "alpha", .type = HONE_ATTR_FLOAT},
                                       {.name = "beta", .type = HONE_ATTR_FLOAT},
                                       {.name = "transA", .type = HONE_ATTR_INT},
                                       {.name = "transB", .type = HONE_ATTR_INT},
                                       HN_FUSED_ACTIVATION_ATTRS,
                                       {0}};

HN_OP(fused_gemm) = {HONE_DESC_HEAD(hone_op_desc),
                     .domain = "com.microsoft",
                     .op_type = "FusedGemm",
                     .since = 1,
                     HN_INPUTS(2, 3),
                     HN_OUTPUTS(1, 1),
                     .types = HN_TYPES_FLOAT,
                     .attrs = attrs,
                     .infer = infer,
                     .cost = cost,
                     .reference = reference};
