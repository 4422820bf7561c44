/* NhwcConv: Conv whose channels are the last dimension, of the input, of the weights ([filters, kernel...,
 * channels of a group]) and of the result. */
#include "model/ops/conv/conv_core.h"
#include "model/ops/microsoft/common/inner.h"

enum { X, W, BIAS };
extern const hone_op_desc hn_op_conv;

static hone_status infer(const hone_infer *io, hone_error *error) {
  hn_inner conv;
  hn_inner_same(&conv, io->node, &hn_op_conv, 11);
  hone_tensor_desc x = hn_channels_first(io->input[X]), w = hn_channels_first(io->input[W]), y = {.rank = -1},
                   *out = &y;
  const hone_tensor_desc *in[3] = {&x, &w, hn_has_input(io, BIAS) ? io->input[BIAS] : NULL};
  hone_infer view = *io;
  view.node = &conv.node;
  view.input = in;
  view.n_inputs = 3;
  view.n_outputs = 1;
  view.output = &out;
  const hone_status s = conv.node.op->infer(&view, error);
  if (s) return s;
  y = hn_channels_last(&y);
  hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *c) {
  const hone_tensor_desc *w = io->input[W];
  const double filters = w->rank > 0 && w->dim[0] > 0 ? (double)w->dim[0] : 1;
  hn_cost_macs(c, hn_known_count(io->output[0]) * hn_known_count(w) / filters);
}

static hone_status reference(hone_call *call, hone_error *error) {
  hn_inner conv;
  hone_tensor w;
  int64_t perm[HONE_MAX_RANK];
  hn_inner_same(&conv, call->node, &hn_op_conv, 11);
  hn_channels_first_perm(call->input[W]->desc.rank, perm);
  if (!hn_inner_transpose(call, call->input[W], perm, &w, error)) return HONE_ERROR_MEMORY;
  const hone_tensor *const in[3] = {call->input[X], &w, hn_call_has(call, BIAS) ? call->input[BIAS] : NULL};
  hone_call view = *call;
  view.input = in;
  view.n_inputs = in[BIAS] ? 3 : 2;
  return hn_inner_run_last(&view, &conv, error);
}

static const hone_attr_desc attrs[] = {HN_CONV_ATTRS, {0}};

HN_OP(nhwc_conv) = {HONE_DESC_HEAD(hone_op_desc),
                    .domain = "com.microsoft",
                    .op_type = "NhwcConv",
                    .since = 1,
                    HN_INPUTS(2, 3),
                    HN_OUTPUTS(1, 1),
                    .types = HN_TYPES_FLOAT,
                    .attrs = attrs,
                    .infer = infer,
                    .cost = cost,
                    .reference = reference};
