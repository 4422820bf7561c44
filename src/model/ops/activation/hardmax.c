/* Hardmax: 1 at the first largest element of a row, 0 elsewhere. */
#include "model/ops/activation/rows.h"

#define HARDMAX                                                                                              \
  int64_t best = 0;                                                                                          \
  for (int64_t i = 1; i < n; i++)                                                                            \
    if (x[i] > x[best]) best = i;                                                                            \
  for (int64_t i = 0; i < n; i++) y[i] = i == best

static void row_f32(const float *x, float *y, int64_t n) { HARDMAX; }
static void row_f64(const double *x, double *y, int64_t n) { HARDMAX; }

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_rows_run(call, row_f32, row_f64, NULL, error);
}

HN_OP(hardmax) = {HN_OP_HEAD,
                  .op_type = "Hardmax",
                  .since = 1,
                  HN_ROWS_ARITY,
                  .types = HN_TYPES_FLOAT,
                  .attrs = hn_rows_attrs,
                  .infer = hn_rows_infer,
                  .reference = reference};
