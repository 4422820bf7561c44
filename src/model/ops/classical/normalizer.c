/* Normalizer: every sample over its largest feature, the sum of their sizes, or its Euclidean length; what
 * would be divided by 0 stays as it is. */
#include "model/ops/classical/features.h"

typedef enum norm { NORM_MAX, NORM_L1, NORM_L2 } norm;

static bool norm_of(const hone_node *node, norm *out) {
  static const char *const names[] = {"MAX", "L1", "L2"};
  for (int i = 0; i < 3; i++)
    if (strcmp(hone_node_string(node, "norm", "MAX"), names[i]) == 0) return *out = (norm)i, true;
  return false;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  norm n;
  if (!norm_of(io->node, &n))
    return hn_op_bad(io->node, error, "norm is '%.40s'; expected MAX, L1 or L2",
                     hone_node_string(io->node, "norm", ""));
  return hn_features_like_x(io, error);
}

/* So many sums beside each other that none waits for the one before it; NaN is no largest feature. */
#define LANES HN_FEATURES_LANES
#define OVER(NAME, SUM, BEGIN)                                                                               \
  static double NAME(const double *x, int64_t width) {                                                       \
    double lane[LANES];                                                                                      \
    int64_t i = 0;                                                                                           \
    for (int k = 0; k < LANES; k++) lane[k] = BEGIN;                                                         \
    for (; i + LANES <= width; i += LANES)                                                                   \
      for (int k = 0; k < LANES; k++) lane[k] = SUM(lane[k], x[i + k]);                                      \
    double all = lane[0];                                                                                    \
    for (; i < width; i++) all = SUM(all, x[i]);                                                             \
    for (int k = 1; k < LANES; k++) all = JOIN_##NAME(all, lane[k]);                                         \
    return all;                                                                                              \
  }
#define MOST(a, b) ((b) > (a) ? (b) : (a))
#define SIZES(a, b) ((a) + fabs(b))
#define SQUARES(a, b) ((a) + (b) * (b))
#define JOIN_largest(a, b) MOST(a, b)
#define JOIN_sizes(a, b) ((a) + (b))
#define JOIN_squares(a, b) ((a) + (b))
OVER(largest, MOST, -(double)INFINITY)
OVER(sizes, SIZES, 0)
OVER(squares, SQUARES, 0)
#undef MOST
#undef SIZES
#undef SQUARES
#undef JOIN_largest
#undef JOIN_sizes
#undef JOIN_squares
#undef OVER
#undef LANES

static double length(norm n, const double *x, int64_t width) {
  return n == NORM_MAX ? largest(x, width) : n == NORM_L1 ? sizes(x, width) : sqrt(squares(x, width));
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  norm n = NORM_MAX;
  norm_of(call->node, &n);
  const int64_t width = hn_features_width(&x->desc), rows = width ? hn_count(x) / width : 0;
  double *row = hn_scratch(call, width, sizeof *row, error);
  if (!row) return HONE_ERROR_MEMORY;
  for (int64_t r = 0; r < rows; r++) {
    if (r % 1024 == 0 && call->stopped(call)) return HONE_ERROR_CANCELLED;
    hn_load_f64(row, x, r * width, width);
    const double by = length(n, row, width), inverse = 1 / by;
    if (isfinite(inverse))
      for (int64_t i = 0; i < width; i++) row[i] *= inverse;
    else if (by != 0)
      for (int64_t i = 0; i < width; i++) row[i] /= by;
    hn_store_f64(call->output[0], r * width, row, width);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "norm", .type = HONE_ATTR_STRING}, {0}};

HN_OP(normalizer) = {HN_FEATURES_OP("Normalizer", 1, 1), .attrs = attrs, .infer = infer,
                     .reference = reference};
