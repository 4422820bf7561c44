/* Conv: y[n][m] = bias[m] + sum over channels and kernel of w * x, 1-D to 3-D, groups, dilations. Sums in
 * double. */
#include "model/ops/conv/conv_core.h"

typedef struct sink_arg {
  hone_tensor *y;
  const hone_tensor *bias;
  int64_t filters, plane;
} sink_arg;

static void sink(void *arg, int64_t n, int64_t m, int64_t at, const double *acc, int64_t count) {
  sink_arg *s = arg;
  double sum[256], b = s->bias ? hn_get_f64(s->bias, m) : 0;
  int64_t base = (n * s->filters + m) * s->plane + at;
  for (int64_t i = 0; i < count; i += 256) {
    int64_t part = hn_min(256, count - i);
    for (int64_t j = 0; j < part; j++) sum[j] = acc[i + j] + b;
    hn_store_f64(s->y, base + i, sum, part);
  }
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_status s = hn_infer_same_dtype(io, 0, 1, error);
  if (!s) s = hn_infer_same_dtype(io, 0, 2, error);
  if (!s) s = hn_infer_vector(io, 2, io->input[1]->rank > 0 ? io->input[1]->dim[0] : -1, error);
  return s ? s : hn_conv_infer(io, 1, io->input[0]->dtype, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0], *w = call->input[1];
  hone_tensor *y = call->output[0];
  hn_conv c;
  hone_status s = hn_conv_init(&c, call->node, &x->desc, &w->desc, error);
  if (s) return s;
  sink_arg arg = {y, hn_call_has(call, 2) ? call->input[2] : NULL, c.groups * c.filters,
                  hn_dims(&y->desc, 2, y->desc.rank)};
  if (x->desc.dtype == HONE_DTYPE_F64)
    return hn_conv_forward(call, &c, HONE_DTYPE_F64, x->data, w->data, sink, &arg, error);
  const float *xf = hn_all_f32(call, x, error), *wf = xf ? hn_all_f32(call, w, error) : NULL;
  if (!wf) return HONE_ERROR_MEMORY;
  return hn_conv_forward(call, &c, HONE_DTYPE_F32, xf, wf, sink, &arg, error);
}

static void cost(const hone_infer *io, hone_cost *cost) { hn_conv_cost(io, 1, cost); }

static const hone_attr_desc attrs[] = {HN_CONV_ATTRS, {0}};

HN_OP(conv) = {HN_OP_HEAD,
               .op_type = "Conv",
               .since = 1,
               HN_INPUTS(2, 3),
               HN_OUTPUTS(1, 1),
               .types = HN_TYPES_FLOAT,
               .attrs = attrs,
               .infer = infer,
               .cost = cost,
               .reference = reference,
               .product = HONE_PRODUCT_CONV,
               .layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED,
               .codes = HONE_CODES_WEIGHTS,
               .on_codes = "QLinearConv"};
