/* ConvTransposeWithDynamicPads: ConvTranspose whose pads are an input, all 0 without it. */
#include "model/ops/common/window.h"
#include "model/ops/microsoft/common/inner.h"

enum { X, W, PADS, BIAS, INPUTS };
extern const hone_op_desc hn_op_conv_transpose;

/* The node with `n` pads, which must stay where they are; n < 0: none. */
static void begin(hn_inner *inner, const hone_node *n, const int64_t *pads, int64_t count) {
  hn_inner_begin(inner, n, &hn_op_conv_transpose, 11);
  for (uint32_t i = 0; i < n->n_attr && inner->node.n_attr + 1 < HN_INNER_ATTRS; i++)
    inner->attr[inner->node.n_attr++] = n->attr[i];
  if (count > 0)
    inner->attr[inner->node.n_attr++] =
        (hn_attr){.name = "pads", .type = HONE_ATTR_INTS, .list = {(size_t)count, pads}};
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  int64_t pads[2 * HN_MAX_SPATIAL], count = 0;
  const hone_tensor_desc *in[] = {io->input[X], io->input[W],
                                  hn_has_input(io, BIAS) ? io->input[BIAS] : NULL};
  hone_tensor_desc y = {.rank = -1}, *out = &y;
  hn_inner inner;
  if (hn_has_input(io, PADS)) {
    const hone_status s = hn_infer_dtype_in(io, PADS, HONE_TYPES(HONE_DTYPE_I64), error);
    if (s) return s;
    if ((count = hn_infer_ints(io, PADS, pads, 2 * HN_MAX_SPATIAL)) == -2)
      return hn_op_bad(io->node, error, "there are more than %d pads", 2 * HN_MAX_SPATIAL);
  }
  begin(&inner, io->node, pads, count);
  hone_infer view = *io;
  view.node = &inner.node;
  view.input = in;
  view.n_inputs = 3;
  view.output = &out;
  view.n_outputs = 1;
  const hone_status s = hn_op_conv_transpose.infer(&view, error);
  if (s) return s;
  for (int32_t i = 2; i < y.rank && count == -1; i++) y.dim[i] = HONE_DIM_UNKNOWN;
  hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  int64_t pads[2 * HN_MAX_SPATIAL], count = 0;
  const hone_tensor *in[] = {call->input[X], call->input[W],
                             hn_call_has(call, BIAS) ? call->input[BIAS] : NULL};
  hn_inner inner;
  if (hn_call_has(call, PADS) && (count = hn_tensor_ints(call->input[PADS], pads, 2 * HN_MAX_SPATIAL)) < 0)
    return hn_op_bad(call->node, error, "there are more than %d pads", 2 * HN_MAX_SPATIAL);
  begin(&inner, call->node, pads, count);
  return hn_inner_run(call, &inner, in, 3, call->output, 1, error);
}

static const hone_attr_desc attrs[] = {{.name = "auto_pad", .type = HONE_ATTR_STRING},
                                       {.name = "dilations", .type = HONE_ATTR_INTS},
                                       {.name = "group", .type = HONE_ATTR_INT},
                                       {.name = "kernel_shape", .type = HONE_ATTR_INTS},
                                       {.name = "output_padding", .type = HONE_ATTR_INTS},
                                       {.name = "strides", .type = HONE_ATTR_INTS},
                                       {0}};

HN_OP(conv_transpose_with_dynamic_pads) = {HONE_DESC_HEAD(hone_op_desc),
                                           .domain = "com.microsoft",
                                           .op_type = "ConvTransposeWithDynamicPads",
                                           .since = 1,
                                           HN_INPUTS(2, INPUTS),
                                           HN_OUTPUTS(1, 1),
                                           .types = HN_TYPES_FLOAT,
                                           .attrs = attrs,
                                           .infer = infer,
                                           .reference = reference,
                                           .host_inputs = 1u << PADS};
