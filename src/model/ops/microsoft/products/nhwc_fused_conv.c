/* NhwcFusedConv: FusedConv whose channels are the last dimension, of the input, of what is added and of the
 * result; the weights are Conv's. */
#include "model/ops/conv/conv_core.h"
#include "model/ops/microsoft/activations/fused_activation.h"

enum { X, W, BIAS, Z };
extern const hone_op_desc hn_op_fused_conv;

static void inner_of(hn_inner *inner, const hone_node *node) {
  hn_inner_same(inner, node, &hn_op_fused_conv, 1);
  inner->node.domain = "com.microsoft";
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  hn_inner conv;
  inner_of(&conv, io->node);
  hone_tensor_desc z = {.rank = -1};
  const hone_tensor_desc *in[4] = {0};
  for (uint32_t i = 0; i < io->n_inputs && i < 4; i++) in[i] = io->input[i];
  if (in[Z]) z = hn_channels_first(in[Z]), in[Z] = &z;
  hone_infer view = *io;
  view.input = in;
  return hn_inner_infer_last(&view, &conv, error);
}

static void cost(const hone_infer *io, hone_cost *cost) { hn_conv_cost(io, W, cost); }

static hone_status reference(hone_call *call, hone_error *error) {
  hn_inner conv;
  hone_tensor z;
  const hone_tensor *in[4] = {0};
  int64_t perm[HONE_MAX_RANK];
  inner_of(&conv, call->node);
  for (uint32_t i = 0; i < call->n_inputs && i < 4; i++) in[i] = call->input[i];
  if (in[Z]) {
    hn_channels_first_perm(in[Z]->desc.rank, perm);
    if (!hn_inner_transpose(call, in[Z], perm, &z, error)) return HONE_ERROR_MEMORY;
    in[Z] = &z;
  }
  hone_call view = *call;
  view.input = in;
  return hn_inner_run_last(&view, &conv, error);
}

static const hone_attr_desc attrs[] = {HN_CONV_ATTRS, HN_FUSED_ACTIVATION_ATTRS, {0}};

HN_OP(nhwc_fused_conv) = {HONE_DESC_HEAD(hone_op_desc),
                          .domain = "com.microsoft",
                          .op_type = "NhwcFusedConv",
                          .since = 1,
                          HN_INPUTS(2, 4),
                          HN_OUTPUTS(1, 1),
                          .types = HN_TYPES_FLOAT,
                          .attrs = attrs,
                          .infer = infer,
                          .cost = cost,
                          .reference = reference};
