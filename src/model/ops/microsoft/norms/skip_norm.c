#include "model/ops/microsoft/norms/skip_norm.h"

#include "model/ops/normalize/moments.h"

enum { X, SKIP, GAMMA };
enum { Y, MEAN, INVERSE, SUM };

/* Like x, or with a batch of 1, or without one. */
static bool skip_fits(const hone_tensor_desc *x, const hone_tensor_desc *skip) {
  if (x->rank < 0 || skip->rank < 0) return true;
  if (skip->rank != x->rank && skip->rank != x->rank - 1) return false;
  const int32_t lead = x->rank - skip->rank;
  for (int32_t i = 0; i < skip->rank; i++)
    if (hn_dims_differ(skip->dim[i], x->dim[i + lead]) && (i + lead > 0 || skip->dim[i] != 1)) return false;
  return true;
}

hone_status hn_skip_norm_infer(const hone_infer *io, uint32_t beta, hone_error *error) {
  const hone_tensor_desc *x = io->input[X];
  const int64_t n = x->rank > 0 ? x->dim[x->rank - 1] : HONE_DIM_UNKNOWN;
  int64_t dims[HONE_MAX_RANK];
  hone_status s = HONE_OK;
  if (x->rank >= 0 && x->rank != 2 && x->rank != 3)
    return hn_op_bad(io->node, error, "the input has rank %d, expected 2 or 3", (int)x->rank);
  if (!skip_fits(x, io->input[SKIP])) return hn_op_bad(io->node, error, "skip does not fit the input");
  for (uint32_t i = SKIP; i < io->n_inputs && !s; i++) s = hn_infer_same_dtype(io, X, i, error);
  for (uint32_t i = GAMMA; i < io->n_inputs && !s; i++) s = hn_infer_vector(io, i, n, error);
  if (s) return s;
  (void)beta;
  for (int32_t i = 0; i < x->rank; i++) dims[i] = i == x->rank - 1 ? 1 : x->dim[i];
  hn_infer_set(io, Y, x->dtype, x->rank, x->dim);
  hn_infer_set(io, MEAN, HONE_DTYPE_F32, x->rank, dims);
  hn_infer_set(io, INVERSE, HONE_DTYPE_F32, x->rank, dims);
  hn_infer_set(io, SUM, x->dtype, x->rank, x->dim);
  return HONE_OK;
}

void hn_skip_norm_cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 10 * hn_known_count(io->input[X]));
}

hone_status hn_skip_norm_run(hone_call *call, uint32_t beta, hone_error *error) {
  const hone_tensor *x = call->input[X], *skip = call->input[SKIP];
  const int64_t n = x->desc.dim[x->desc.rank - 1], rows = n ? hn_count(x) / n : 0, period = hn_count(skip);
  const double epsilon = (double)hone_node_float(call->node, "epsilon", 1e-12f);
  const hone_dtype type = x->desc.dtype == HONE_DTYPE_F64 ? HONE_DTYPE_F64 : HONE_DTYPE_F32;
  const uint32_t b = beta ? beta + 1 : GAMMA + 1;
  const double *gamma = hn_all_f64(call, call->input[GAMMA], error),
               *shift = gamma && beta && hn_call_has(call, beta) ? hn_all_f64(call, call->input[beta], error)
                                                                 : NULL,
               *bias = gamma && hn_call_has(call, b) ? hn_all_f64(call, call->input[b], error) : NULL;
  double *row = gamma ? hn_scratch(call, n, sizeof *row, error) : NULL,
         *more = row ? hn_scratch(call, n, sizeof *more, error) : NULL;
  if (!more || (!shift && beta && hn_call_has(call, beta)) || (!bias && hn_call_has(call, b)))
    return HONE_ERROR_MEMORY;
  for (int64_t o = 0; o < rows; o++) {
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    hn_load_f64(row, x, o * n, n);
    hn_load_f64(more, skip, o * n % period, n);
    for (int64_t i = 0; i < n; i++) row[i] += more[i] + (bias ? bias[i] : 0);
    if (call->n_outputs > SUM && call->output[SUM]) {
      hn_store_f64(call->output[SUM], o * n, row, n);
      if (type == HONE_DTYPE_F32) hn_load_f64(row, call->output[SUM], o * n, n);
    }
    const double mean = beta ? hn_mean(row, n, type) : 0,
                 inverse = 1 / sqrt((beta ? hn_variance(row, n, mean, type) : hn_mean_square(row, n, type)) +
                                    epsilon);
    for (int64_t i = 0; i < n; i++) row[i] = (row[i] - mean) * inverse * gamma[i] + (shift ? shift[i] : 0);
    if (call->output[Y]) hn_store_f64(call->output[Y], o * n, row, n);
    if (call->n_outputs > MEAN && call->output[MEAN]) hn_set_f64(call->output[MEAN], o, mean);
    if (call->n_outputs > INVERSE && call->output[INVERSE]) hn_set_f64(call->output[INVERSE], o, inverse);
  }
  return HONE_OK;
}

const hone_attr_desc hn_skip_norm_attrs[] = {{.name = "epsilon", .type = HONE_ATTR_FLOAT}, {0}};
