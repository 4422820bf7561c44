/* Det: determinants of square matrices, by elimination with row exchanges, in f64. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  if (x->rank == 0 || x->rank == 1) return hn_op_bad(io->node, error, "the input has rank %d", x->rank);
  if (x->rank >= 2) {
    int64_t m = x->dim[x->rank - 2], n = x->dim[x->rank - 1];
    if (m >= 0 && n >= 0 && m != n)
      return hn_op_bad(io->node, error, "matrices of %lld x %lld are not square", (long long)m, (long long)n);
  }
  hn_infer_set(io, 0, x->dtype, x->rank < 0 ? -1 : x->rank - 2, x->dim);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *c) {
  const hone_tensor_desc *x = io->input[0];
  double n = x->rank >= 2 && hone_desc_known(x) ? (double)x->dim[x->rank - 1] : 0;
  hn_cost_flops(c, hn_known_count(x) * n * 2 / 3);
}

static double determinant(double *a, int64_t n) {
  double det = 1;
  for (int64_t c = 0; c < n; c++) {
    int64_t pivot = c;
    for (int64_t r = c + 1; r < n; r++)
      if (fabs(a[r * n + c]) > fabs(a[pivot * n + c])) pivot = r;
    if (a[pivot * n + c] == 0) return 0;
    if (pivot != c) {
      det = -det;
      for (int64_t k = c; k < n; k++) {
        double t = a[c * n + k];
        a[c * n + k] = a[pivot * n + k];
        a[pivot * n + k] = t;
      }
    }
    det *= a[c * n + c];
    for (int64_t r = c + 1; r < n; r++) {
      double f = a[r * n + c] / a[c * n + c];
      for (int64_t k = c + 1; k < n; k++) a[r * n + k] -= f * a[c * n + k];
    }
  }
  return det;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  if (hn_count(y) == 0) return HONE_OK;
  int64_t n = x->desc.dim[x->desc.rank - 1], size = n * n; /* fits: y has elements */
  double *a = hn_scratch(call, size, sizeof *a, error);
  if (!a) return HONE_ERROR_MEMORY;
  for (int64_t i = 0, count = hn_count(y); i < count; i++) {
    hone_status status = hn_call_check(call, error);
    if (status) return status;
    hn_load_f64(a, x, i * size, size);
    hn_set_f64(y, i, determinant(a, n));
  }
  return HONE_OK;
}

HN_OP(det) = {HN_OP_HEAD,      .op_type = "Det", .since = 11,
              HN_INPUTS(1, 1), HN_OUTPUTS(1, 1), .types = HN_TYPES_FLOAT,
              .infer = infer,  .cost = cost,     .reference = reference};
