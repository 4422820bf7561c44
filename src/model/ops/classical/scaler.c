/* Scaler: (X - offset) * scale, one of each for all features or one a feature. */
#include "model/ops/classical/features.h"

enum { FEATURES = 1024 }; /* that are converted at once */

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  const hone_status s = hn_features_like_x(io, error);
  if (s || x->rank < 0 || hn_features_width(x) < 0) return s;
  static const char *const names[] = {"offset", "scale"};
  for (int i = 0; i < 2; i++) {
    size_t n;
    hone_node_floats(io->node, names[i], &n);
    if (n != 1 && (int64_t)n != hn_features_width(x))
      return hn_op_bad(io->node, error, "%s has %zu numbers, X %lld features", names[i], n,
                       (long long)hn_features_width(x));
  }
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  size_t offsets, scales;
  const float *offset = hone_node_floats(call->node, "offset", &offsets);
  const float *scale = hone_node_floats(call->node, "scale", &scales);
  const int64_t n = hn_count(x), width = hn_features_width(&x->desc);
  if (!n) return HONE_OK;
  /* Rows that are repeated until they are long enough for loops over them to pay. */
  const int64_t period = width * hn_div_up(FEATURES, width);
  double *row = hn_scratch(call, period, sizeof *row, error),
         *less = hn_scratch(call, period, sizeof *less, error),
         *times = hn_scratch(call, period, sizeof *times, error);
  if (!row || !less || !times) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < period; i++) {
    less[i] = (double)offset[offsets == 1 ? 0 : i % width];
    times[i] = (double)scale[scales == 1 ? 0 : i % width];
  }
  float *y = call->output[0]->data;
  for (int64_t i = 0, some; i < n; i += some) {
    some = hn_min(period, n - i);
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    hn_load_f64(row, x, i, some);
    for (int64_t k = 0; k < some; k++) y[i + k] = (float)((row[k] - less[k]) * times[k]);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "offset", .type = HONE_ATTR_FLOATS, .required = true},
                                       {.name = "scale", .type = HONE_ATTR_FLOATS, .required = true},
                                       {0}};

HN_OP(scaler) = {HN_FEATURES_OP("Scaler", 1, 1), .attrs = attrs, .infer = infer, .reference = reference};
