/* ConvInteger: 8-bit integers less their zero points, convolved exactly into i32 (which wraps on overflow).
 */
#include "model/ops/quantized/quant_conv.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *w = io->input[1];
  hone_status s = hn_infer_dtype_in(io, 1, HN_TYPES_8BIT, error);
  if (!s) s = hn_infer_same_dtype(io, 0, 2, error);
  if (!s) s = hn_infer_same_dtype(io, 1, 3, error);
  if (!s) s = hn_infer_quant_param(io, 2, 1, error);
  if (!s) s = hn_infer_quant_param(io, 3, w->rank > 0 ? w->dim[0] : HONE_DIM_UNKNOWN, error);
  return s ? s : hn_conv_infer(io, 1, HONE_DTYPE_I32, error);
}

typedef struct sink_arg {
  hone_tensor *y;
  int64_t filters, plane;
} sink_arg;

static void sink(void *arg, int64_t n, int64_t m, int64_t at, const double *acc, int64_t count) {
  sink_arg *s = arg;
  int32_t *y = (int32_t *)s->y->data + (n * s->filters + m) * s->plane + at;
  for (int64_t i = 0; i < count; i++) y[i] = (int32_t)(uint32_t)(int64_t)acc[i];
}

static hone_status reference(hone_call *call, hone_error *error) {
  sink_arg arg = {.y = call->output[0]};
  arg.filters = arg.y->desc.dim[1];
  arg.plane = hn_dims(&arg.y->desc, 2, arg.y->desc.rank);
  return hn_quant_conv(call, 1, hn_call_has(call, 2) ? call->input[2] : NULL,
                       hn_call_has(call, 3) ? call->input[3] : NULL, sink, &arg, error);
}

static void cost(const hone_infer *io, hone_cost *cost) { hn_conv_cost(io, 1, cost); }

static const hone_attr_desc attrs[] = {HN_CONV_ATTRS, {0}};

HN_OP(conv_integer) = {HN_OP_HEAD,
                       .op_type = "ConvInteger",
                       .since = 10,
                       HN_INPUTS(2, 4),
                       HN_OUTPUTS(1, 1),
                       .types = HN_TYPES_8BIT,
                       .attrs = attrs,
                       .infer = infer,
                       .cost = cost,
                       .reference = reference,
                       .flags = HONE_OP_CODES,
                       .layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED};
