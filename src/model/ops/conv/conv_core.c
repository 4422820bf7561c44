/* Convolution by definition (conv_core.h). */
#include "model/ops/conv/conv_core.h"

#include "base/unwatched.h"

/* Output columns whose sums are kept at once: with four filters they stay in the first-level cache. */
#define ROW_CHUNK 512

/* Input positions [*lo, *hi) of dimension d that kernel element k spreads into the output. */
static void scatter_range(const hn_window *g, int32_t d, int64_t k, int64_t *lo, int64_t *hi) {
  /* A transposed window is a forward one with input and output exchanged. */
  hn_window t = *g;
  t.in[d] = g->out[d];
  t.out[d] = g->in[d];
  hn_window_range(&t, d, k, lo, hi);
}

#define T float
#define NAME(x) x##_f32
#include "model/ops/conv/conv_core.inc"
#undef T
#undef NAME
#define T double
#define NAME(x) x##_f64
#include "model/ops/conv/conv_core.inc"
#undef T
#undef NAME

static bool plain(const hn_window *g, int32_t d) {
  return g->kernel[d] == 1 && g->stride[d] == 1 && !g->pad[d] && g->in[d] == g->out[d];
}

/* Joins rows where no window looks across them (1x1, stride 1), so that the inner loop is long. */
static void join_rows(hn_window *g) {
  if (!plain(g, 1) || !plain(g, 2)) return;
  for (int32_t d = plain(g, 0) ? 0 : 1; d < 2; d++) {
    g->in[2] *= g->in[d];
    g->in[d] = g->out[d] = 1;
  }
  g->out[2] = g->in[2];
}

hone_status hn_conv_forward(hone_call *call, const hn_conv *conv, hone_dtype dtype, const void *x,
                            const void *w, hn_conv_sink sink, void *arg, hone_error *error) {
  hn_conv c = *conv;
  (void)error;
  join_rows(&c.window);
  if (dtype == HONE_DTYPE_F64) return forward_f64(call, &c, x, w, sink, arg);
  return forward_f32(call, &c, x, w, sink, arg);
}

hone_status hn_conv_transposed(hone_call *call, const hn_conv *c, hone_dtype dtype, const void *x,
                               const void *w, hn_conv_sink sink, void *arg, hone_error *error) {
  const hn_window *g = &c->window;
  double *acc = hn_scratch(call, g->out[0] * g->out[1] * g->out[2], sizeof *acc, error);
  if (!acc) return HONE_ERROR_MEMORY;
  if (dtype == HONE_DTYPE_F64) return transposed_f64(call, c, x, w, acc, sink, arg);
  return transposed_f32(call, c, x, w, acc, sink, arg);
}

/* Checks channels and group; *groups is the attribute. Either descriptor may have unknown dimensions. */
static hone_status check_channels(const hone_node *node, const hone_tensor_desc *x, const hone_tensor_desc *w,
                                  int64_t *groups, hone_error *error) {
  *groups = hone_node_int(node, "group", 1);
  if (*groups < 1 || *groups > INT32_MAX) return hn_op_bad(node, error, "group is %lld", (long long)*groups);
  if (w->rank >= 0 && x->rank >= 0 && w->rank != x->rank)
    return hn_op_bad(node, error, "the weights have rank %d, the input %d", (int)w->rank, (int)x->rank);
  if (w->rank < 0) return HONE_OK;
  if (w->rank < 3) return hn_op_bad(node, error, "the weights have rank %d", (int)w->rank);
  if (w->dim[0] >= 0 && w->dim[0] % *groups)
    return hn_op_bad(node, error, "%lld filters do not divide into %lld groups", (long long)w->dim[0],
                     (long long)*groups);
  if (x->rank < 0 || x->dim[1] < 0 || w->dim[1] < 0) return HONE_OK;
  if (x->dim[1] % *groups || x->dim[1] / *groups != w->dim[1])
    return hn_op_bad(node, error, "the input has %lld channels, the weights expect %lld x %lld groups",
                     (long long)x->dim[1], (long long)w->dim[1], (long long)*groups);
  return HONE_OK;
}

hone_status hn_conv_infer(const hone_infer *io, uint32_t w_input, hone_dtype out, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *w = io->input[w_input];
  int64_t groups, dims[HONE_MAX_RANK];
  hone_status s = check_channels(io->node, x, w, &groups, error);
  if (s) return s;
  if (x->rank < 0) {
    if (w->rank < 0) return hn_infer_set(io, 0, out, -1, NULL), HONE_OK;
    for (int32_t i = 0; i < w->rank; i++) dims[i] = HONE_DIM_UNKNOWN;
    dims[1] = w->dim[0];
    return hn_infer_set(io, 0, out, w->rank, dims), HONE_OK;
  }
  hn_window g;
  int64_t unknown[HN_MAX_SPATIAL] = {HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN};
  if ((s = hn_window_init(&g, io->node, x, w->rank < 0 ? unknown : w->dim + 2, false, error))) return s;
  dims[0] = x->dim[0];
  dims[1] = w->rank < 0 ? HONE_DIM_UNKNOWN : w->dim[0];
  for (int32_t i = 0; i < g.n; i++) dims[2 + i] = g.out[i];
  hn_infer_set(io, 0, out, x->rank, dims);
  return HONE_OK;
}

hone_status hn_conv_init(hn_conv *c, const hone_node *node, const hone_tensor_desc *x,
                         const hone_tensor_desc *w, hone_error *error) {
  hone_status s = check_channels(node, x, w, &c->groups, error);
  hn_window g;
  if (s) return s;
  if ((s = hn_window_init(&g, node, x, w->dim + 2, false, error))) return s;
  c->batch = x->dim[0];
  c->channels = w->dim[1];
  c->filters = w->dim[0] / c->groups;
  c->window = hn_window_3d(&g);
  return HONE_OK;
}

void hn_conv_cost(const hone_infer *io, uint32_t w_input, hone_cost *cost) {
  const hone_tensor_desc *w = io->input[w_input];
  double macs = io->output[0] ? hn_known_count(io->output[0]) : 0;
  for (int32_t i = 1; i < w->rank; i++) macs *= w->dim[i] > 0 ? (double)w->dim[i] : 0;
  hn_cost_macs(cost, w->rank < 3 ? 0 : macs);
}
