/* LinearRegressor: for every target the product of a sample with its coefficients, and its intercept. */
#include "model/ops/classical/features.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  const int64_t targets = hone_node_int(io->node, "targets", 1);
  size_t coefficients, intercepts;
  hn_transform transform;
  hone_node_floats(io->node, "coefficients", &coefficients);
  hone_node_floats(io->node, "intercepts", &intercepts);
  hone_status s = hn_features_rank(io, error);
  if (!s) s = hn_transform_read(io->node, &transform, error);
  if (s) return s;
  if (targets < 1 || coefficients % (size_t)targets || (intercepts && intercepts != (size_t)targets))
    return hn_op_bad(io->node, error, "%zu coefficients and %zu intercepts for %lld targets", coefficients,
                     intercepts, (long long)targets);
  if (x->rank > 0 && hn_features_width(x) >= 0 && hn_features_width(x) != (int64_t)coefficients / targets)
    return hn_op_bad(io->node, error, "X has %lld features, %lld coefficients a target expected",
                     (long long)hn_features_width(x), (long long)coefficients / targets);
  hn_infer_set(io, 0, HONE_DTYPE_F32, 2, (int64_t[]){hn_features_rows(x), targets});
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const int64_t targets = hone_node_int(call->node, "targets", 1);
  size_t n, intercepts;
  const float *coefficient = hone_node_floats(call->node, "coefficients", &n);
  const float *intercept = hone_node_floats(call->node, "intercepts", &intercepts);
  const int64_t width = hn_features_width(&x->desc), rows = hn_features_rows(&x->desc);
  hn_transform transform;
  const hone_status s = hn_transform_read(call->node, &transform, error);
  if (s) return s;
  hn_features_turned turned;
  double *row = hn_scratch(call, HN_FEATURES_AT_ONCE * width, sizeof *row, error);
  if (!row || hn_features_turn(call, coefficient, width, targets, &turned, error)) return HONE_ERROR_MEMORY;
  double *y = hn_scratch(call, HN_FEATURES_AT_ONCE * turned.pitch, sizeof *y, error);
  if (!y) return HONE_ERROR_MEMORY;
  for (int64_t r = 0, some; r < rows; r += some) {
    some = hn_min(HN_FEATURES_AT_ONCE, rows - r);
    if (r % 64 == 0 && call->stopped(call)) return HONE_ERROR_CANCELLED;
    hn_load_f64(row, x, r * width, some * width);
    hn_features_sums(&turned, row, some, y);
    for (int64_t k = 0; k < some; k++) {
      double *own = y + k * turned.pitch;
      for (int64_t t = 0; t < targets && intercepts; t++) own[t] += (double)intercept[t];
      hn_transform_row(transform, own, targets);
      hn_store_f64(call->output[0], (r + k) * targets, own, targets);
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "coefficients", .type = HONE_ATTR_FLOATS, .required = true},
                                       {.name = "intercepts", .type = HONE_ATTR_FLOATS},
                                       {.name = "targets", .type = HONE_ATTR_INT},
                                       {.name = "post_transform", .type = HONE_ATTR_STRING},
                                       {0}};

HN_OP(linear_regressor) = {HN_FEATURES_OP("LinearRegressor", 1, 1), .attrs = attrs, .infer = infer,
                           .reference = reference};
