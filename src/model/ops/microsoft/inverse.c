/* Inverse of square matrices, by elimination with row exchanges, in f64. What has none is infinite or NaN. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  if (x->rank == 0 || x->rank == 1) return hn_op_bad(io->node, error, "the input has rank %d", (int)x->rank);
  if (x->rank >= 2) {
    const int64_t m = x->dim[x->rank - 2], n = x->dim[x->rank - 1];
    if (m >= 0 && n >= 0 && m != n)
      return hn_op_bad(io->node, error, "matrices of %lld x %lld are not square", (long long)m, (long long)n);
  }
  hn_infer_set(io, 0, x->dtype, x->rank, x->dim);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *c) {
  const hone_tensor_desc *x = io->input[0];
  const double n = x->rank >= 2 && hone_desc_known(x) ? (double)x->dim[x->rank - 1] : 0;
  hn_cost_flops(c, hn_known_count(x) * n * 2);
}

/* Gauss and Jordan on [a | identity], rows of 2 n. */
static void invert(double *a, int64_t n) {
  const int64_t w = 2 * n;
  for (int64_t c = 0; c < n; c++) {
    int64_t pivot = c;
    for (int64_t r = c + 1; r < n; r++)
      if (fabs(a[r * w + c]) > fabs(a[pivot * w + c])) pivot = r;
    for (int64_t k = 0; k < w && pivot != c; k++) {
      const double t = a[c * w + k];
      a[c * w + k] = a[pivot * w + k];
      a[pivot * w + k] = t;
    }
    const double by = 1 / a[c * w + c];
    for (int64_t k = 0; k < w; k++) a[c * w + k] *= by;
    for (int64_t r = 0; r < n; r++) {
      const double f = a[r * w + c];
      for (int64_t k = 0; k < w && r != c; k++) a[r * w + k] -= f * a[c * w + k];
    }
  }
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  if (hn_count(y) == 0) return HONE_OK;
  const int64_t n = x->desc.dim[x->desc.rank - 1], size = n * n;
  double *a = hn_scratch(call, 2 * size, sizeof *a, error);
  if (!a) return HONE_ERROR_MEMORY;
  for (int64_t i = 0, count = hn_count(y) / size; i < count; i++) {
    const hone_status s = hn_call_check(call, error);
    if (s) return s;
    for (int64_t r = 0; r < n; r++) {
      hn_load_f64(a + 2 * r * n, x, i * size + r * n, n);
      for (int64_t k = 0; k < n; k++) a[(2 * r + 1) * n + k] = r == k;
    }
    invert(a, n);
    for (int64_t r = 0; r < n; r++) hn_store_f64(y, i * size + r * n, a + (2 * r + 1) * n, n);
  }
  return HONE_OK;
}

HN_OP(inverse) = {HONE_DESC_HEAD(hone_op_desc),
                  .domain = "com.microsoft",
                  .op_type = "Inverse",
                  .since = 1,
                  HN_INPUTS(1, 1),
                  HN_OUTPUTS(1, 1),
                  .types = HN_TYPES_FLOAT,
                  .infer = infer,
                  .cost = cost,
                  .reference = reference};
