/* ConvTranspose: the gradient of a convolution. Every input element spreads w * x into the output; sums in
 * double. */
#include "model/ops/conv/conv_core.h"

typedef struct sink_arg {
  hone_tensor *y;
  const hone_tensor *bias;
  int64_t filters, plane;
  double *sum;
} sink_arg;

static void sink(void *arg, int64_t n, int64_t m, int64_t at, const double *acc, int64_t count) {
  sink_arg *s = arg;
  double b = s->bias ? hn_get_f64(s->bias, m) : 0;
  for (int64_t i = 0; i < count; i++) s->sum[i] = acc[i] + b;
  hn_store_f64(s->y, (n * s->filters + m) * s->plane + at, s->sum, count);
}

/* W is [channels][filters / group][kernel...]. */
static hone_status check(const hone_node *node, const hone_tensor_desc *x, const hone_tensor_desc *w,
                         int64_t *group, hone_error *error) {
  *group = hone_node_int(node, "group", 1);
  if (*group < 1 || *group > INT32_MAX) return hn_op_bad(node, error, "group is %lld", (long long)*group);
  if (w->rank >= 0 && x->rank >= 0 && w->rank != x->rank)
    return hn_op_bad(node, error, "the weights have rank %d, the input %d", (int)w->rank, (int)x->rank);
  if (w->rank < 0) return HONE_OK;
  if (w->rank < 3) return hn_op_bad(node, error, "the weights have rank %d", (int)w->rank);
  int64_t channels = w->dim[0];
  if (x->rank >= 0 && x->dim[1] >= 0 && channels >= 0 && x->dim[1] != channels)
    return hn_op_bad(node, error, "the input has %lld channels, the weights %lld", (long long)x->dim[1],
                     (long long)channels);
  if (channels >= 0 && channels % *group)
    return hn_op_bad(node, error, "%lld channels do not divide into %lld groups", (long long)channels,
                     (long long)*group);
  if (w->dim[1] > INT64_MAX / *group) return hn_op_bad(node, error, "too many filters");
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *w = io->input[1];
  int64_t group, dims[HONE_MAX_RANK], filters;
  hn_window g;
  hone_status s = check(io->node, x, w, &group, error);
  if (!s) s = hn_infer_same_dtype(io, 0, 1, error);
  if (!s) s = hn_infer_same_dtype(io, 0, 2, error);
  if (s) return s;
  filters = w->rank > 1 && w->dim[1] >= 0 ? w->dim[1] * group : HONE_DIM_UNKNOWN;
  if ((s = hn_infer_vector(io, 2, filters, error))) return s;
  if (x->rank < 0) {
    for (int32_t i = 0; i < w->rank; i++) dims[i] = i == 1 ? filters : HONE_DIM_UNKNOWN;
    return hn_infer_set(io, 0, x->dtype, w->rank, dims), HONE_OK;
  }
  int64_t unknown[HN_MAX_SPATIAL] = {HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN};
  if ((s = hn_window_init_transposed(&g, io->node, x, w->rank < 0 ? unknown : w->dim + 2, error))) return s;
  dims[0] = x->dim[0];
  dims[1] = filters;
  for (int32_t i = 0; i < g.n; i++) dims[2 + i] = g.out[i];
  hn_infer_set(io, 0, x->dtype, x->rank, dims);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0], *w = call->input[1];
  hone_tensor *y = call->output[0];
  hn_conv c;
  hn_window g;
  hone_status s = check(call->node, &x->desc, &w->desc, &c.groups, error);
  if (!s) s = hn_window_init_transposed(&g, call->node, &x->desc, w->desc.dim + 2, error);
  if (s) return s;
  c.batch = x->desc.dim[0];
  c.channels = w->desc.dim[0] / c.groups;
  c.filters = w->desc.dim[1];
  c.window = hn_window_3d(&g);
  sink_arg arg = {y, hn_call_has(call, 2) ? call->input[2] : NULL, c.groups * c.filters,
                  hn_dims(&y->desc, 2, y->desc.rank), NULL};
  if (!(arg.sum = hn_scratch(call, arg.plane, sizeof(double), error))) return HONE_ERROR_MEMORY;
  if (x->desc.dtype == HONE_DTYPE_F64)
    return hn_conv_transposed(call, &c, HONE_DTYPE_F64, x->data, w->data, sink, &arg, error);
  const float *xf = hn_all_f32(call, x, error), *wf = xf ? hn_all_f32(call, w, error) : NULL;
  if (!wf) return HONE_ERROR_MEMORY;
  return hn_conv_transposed(call, &c, HONE_DTYPE_F32, xf, wf, sink, &arg, error);
}

/* Every input element meets every weight of its channel (elements cut off by pads are counted, too). */
static void cost(const hone_infer *io, hone_cost *cost) {
  const hone_tensor_desc *w = io->input[1];
  double macs = hn_known_count(io->input[0]);
  for (int32_t i = 1; i < w->rank; i++) macs *= w->dim[i] > 0 ? (double)w->dim[i] : 0;
  hn_cost_macs(cost, w->rank < 3 ? 0 : macs);
}

static const hone_attr_desc attrs[] = {HN_CONV_ATTRS,
                                       {"output_padding", HONE_ATTR_INTS, false, 0, 0},
                                       {"output_shape", HONE_ATTR_INTS, false, 0, 0},
                                       {0}};

HN_OP(conv_transpose) = {HN_OP_HEAD,
                         .op_type = "ConvTranspose",
                         .since = 1,
                         HN_INPUTS(2, 3),
                         HN_OUTPUTS(1, 1),
                         .types = HN_TYPES_FLOAT,
                         .attrs = attrs,
                         .infer = infer,
                         .cost = cost,
                         .reference = reference,
                         .product = HONE_PRODUCT_CONV_TRANSPOSE,
                         .layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED};
