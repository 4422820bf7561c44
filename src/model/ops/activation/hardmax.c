/* Hardmax: 1 at the first largest element of a row, 0 elsewhere. */
#include "model/ops/activation/rows.h"

enum { LANES = 8 };

/* The greatest of lanes beside each other, then where it stands first; NaN is nowhere greater. */
#define HARDMAX(T)                                                                                           \
  int64_t best = 0, i = 0;                                                                                   \
  T lane[LANES], most;                                                                                       \
  for (int k = 0; k < LANES; k++) lane[k] = x[0];                                                            \
  for (; i + LANES <= n; i += LANES)                                                                         \
    for (int k = 0; k < LANES; k++) lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];                       \
  most = lane[0];                                                                                            \
  for (int k = 1; k < LANES; k++) most = lane[k] > most ? lane[k] : most;                                    \
  for (; i < n; i++) most = x[i] > most ? x[i] : most;                                                       \
  while (best < n - 1 && x[best] != most) best++;                                                            \
  best = most == most ? best : 0;                                                                            \
  memset(y, 0, (size_t)n * sizeof *y);                                                                       \
  y[best] = 1

static void row_f32(const float *x, float *y, int64_t n) { HARDMAX(float); }
static void row_f64(const double *x, double *y, int64_t n) { HARDMAX(double); }

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
