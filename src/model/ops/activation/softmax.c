/* Softmax: exp(x - max) over its sum. Of types narrower than f32 each step is rounded to the type, as the
 * operator's definition by other operators says; a sum that the type cannot hold stays what it is. */
#include "model/ops/activation/rows.h"

#define SOFTMAX(T, EXP)                                                                                      \
  T top = x[0];                                                                                              \
  double sum = 0;                                                                                            \
  for (int64_t i = 1; i < n; i++)                                                                            \
    if (x[i] > top) top = x[i];                                                                              \
  for (int64_t i = 0; i < n; i++) sum += y[i] = EXP(x[i] - top);                                             \
  const T scale = (T)(1 / sum);                                                                              \
  for (int64_t i = 0; i < n; i++) y[i] *= scale

static void row_f32(const float *x, float *y, int64_t n) { SOFTMAX(float, expf); }
static void row_f64(const double *x, double *y, int64_t n) { SOFTMAX(double, exp); }

static void rounded(float *x, void *spare, hone_dtype to, int64_t n) {
  hn_write_f32(spare, to, 0, x, n);
  hn_read_f32(x, spare, to, 0, n);
}

static void row_narrow(float *x, void *spare, hone_dtype type, int64_t n) {
  float top = x[0];
  double sum = 0;
  for (int64_t i = 1; i < n; i++)
    if (x[i] > top) top = x[i];
  for (int64_t i = 0; i < n; i++) x[i] -= top;
  rounded(x, spare, type, n);
  for (int64_t i = 0; i < n; i++) x[i] = expf(x[i]);
  rounded(x, spare, type, n);
  for (int64_t i = 0; i < n; i++) sum += x[i];
  float whole = (float)sum, narrow = whole;
  rounded(&narrow, spare, type, 1);
  if (isinf(narrow)) narrow = whole;
  for (int64_t i = 0; i < n; i++) x[i] /= narrow;
}

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_rows_run(call, row_f32, row_f64, row_narrow, error);
}

HN_OP(softmax) = {HN_OP_HEAD,
                  .op_type = "Softmax",
                  .since = 1,
                  HN_ROWS_ARITY,
                  .types = HN_TYPES_FLOAT,
                  .attrs = hn_rows_attrs,
                  .infer = hn_rows_infer,
                  .cost = hn_rows_cost,
                  .reference = reference};
