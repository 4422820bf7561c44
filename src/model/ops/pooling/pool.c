/* Shared parts of the pooling operators (pool.h). */
#include "model/ops/pooling/pool.h"

static hone_status window(hn_window *w, const hone_node *node, const hone_tensor_desc *x, hone_error *error) {
  return hn_window_init(w, node, x, NULL, hone_node_int(node, "ceil_mode", 0) != 0, error);
}

hone_status hn_pool_infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  int64_t dims[HONE_MAX_RANK];
  hn_window w;
  int32_t rank = x->rank;
  if (rank >= 0) {
    hone_status s = window(&w, io->node, x, error);
    if (s) return s;
    dims[0] = x->dim[0];
    dims[1] = x->dim[1];
    for (int32_t i = 0; i < w.n; i++) dims[2 + i] = w.out[i];
  }
  hn_infer_set(io, 0, x->dtype, rank, dims);
  if (io->n_outputs > 1) hn_infer_set(io, 1, HONE_DTYPE_I64, rank, dims);
  return HONE_OK;
}

hone_status hn_pool_run(hone_call *call, hn_pool_fn fn, void *arg, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  hn_window w;
  hone_status s = window(&w, call->node, &x->desc, error);
  if (s) return s;
  w = hn_window_3d(&w);
  int64_t in = w.in[0] * w.in[1] * w.in[2], out = w.out[0] * w.out[1] * w.out[2];
  int64_t planes = x->desc.dim[0] * x->desc.dim[1];
  double *plane = hn_scratch(call, in, sizeof *plane, error);
  double *row = plane ? hn_scratch(call, w.out[2], sizeof *row, error) : NULL;
  if (!row) return HONE_ERROR_MEMORY;
  hn_pool_tile t = {.window = &w};
  for (t.plane = 0; t.plane < planes; t.plane++) {
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    hn_load_f64(plane, x, t.plane * in, in);
    int64_t at = t.plane * out, skip;
    for (t.out[0] = 0; t.out[0] < w.out[0]; t.out[0]++)
      for (t.out[1] = 0; t.out[1] < w.out[1]; t.out[1]++) {
        for (t.out[2] = 0; t.out[2] < w.out[2]; t.out[2]++) {
          for (int32_t d = 0; d < 3; d++) {
            hn_window_taps(&w, d, t.out[d], &skip, &t.count[d], &t.first[d]);
            t.count[d] -= skip;
          }
          row[t.out[2]] = fn(arg, &t, plane, at + t.out[2]);
        }
        if (y) hn_store_f64(y, at, row, w.out[2]);
        at += w.out[2];
      }
  }
  return HONE_OK;
}

void hn_pool_cost(const hone_infer *io, hone_cost *cost) {
  const hone_tensor_desc *y = io->output[0] ? io->output[0] : io->input[0];
  double flops = hn_known_count(y);
  size_t n = 0;
  const int64_t *k = hone_node_ints(io->node, "kernel_shape", &n);
  for (size_t i = 0; i < n; i++) flops *= (double)k[i];
  hn_cost_flops(cost, flops);
}

hone_status hn_global_pool_infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  int64_t dims[HONE_MAX_RANK];
  if (x->rank >= 0 && x->rank < 2)
    return hn_op_bad(io->node, error, "the input has rank %d, expected at least 2", (int)x->rank);
  for (int32_t i = 0; i < x->rank; i++) dims[i] = i < 2 ? x->dim[i] : 1;
  hn_infer_set(io, 0, x->dtype, x->rank, dims);
  return HONE_OK;
}

hone_status hn_global_pool_run(hone_call *call,
                               double (*f)(const hone_node *node, const double *x, int64_t n),
                               hone_error *error) {
  const hone_tensor *x = call->input[0];
  int64_t planes = hn_count(call->output[0]), n = hn_dims(&x->desc, 2, x->desc.rank);
  double *plane = hn_scratch(call, n, sizeof *plane, error);
  if (!plane) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < planes; i++) {
    hn_load_f64(plane, x, i * n, n);
    double v = f(call->node, plane, n);
    hn_store_f64(call->output[0], i, &v, 1);
  }
  return HONE_OK;
}

void hn_global_pool_cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, hn_known_count(io->input[0]));
}

double hn_lp_term(double x, double p) { return p == 2 ? x * x : p == 1 ? fabs(x) : pow(fabs(x), p); }
double hn_lp_root(double sum, double p) { return p == 2 ? sqrt(sum) : p == 1 ? sum : pow(sum, 1 / p); }

hone_status hn_lp_check(const hone_node *node, hone_error *error) {
  const double p = hone_node_float(node, "p", (float)hone_node_int(node, "p", 2));
  return hn_lp_exponent(node) ? HONE_OK : hn_op_bad(node, error, "p is %g", p);
}
