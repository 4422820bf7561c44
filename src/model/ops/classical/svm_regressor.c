/* SVMRegressor: a sample's kernels with the support vectors, weighted and added up; one_class: its sign. */
#include "model/ops/classical/svm.h"

static hone_status read(const hone_node *node, hn_svm *svm, hone_error *error) {
  const int64_t n = hone_node_int(node, "n_supports", 0);
  hn_transform transform;
  hone_status s = hn_svm_read(node, n, 1, svm, error);
  if (!s && n && svm->n_coefficients != n)
    s = hn_op_bad(node, error, "%lld coefficients for %lld vectors", (long long)svm->n_coefficients,
                  (long long)n);
  if (!s) s = hn_transform_read(node, &transform, error);
  if (!s && transform) s = hn_op_refuse(node, error, "post_transform is not NONE");
  return s;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  hn_svm svm;
  hone_status s = read(io->node, &svm, error);
  if (!s) s = hn_svm_check(io, &svm, error);
  if (!s) hn_infer_set(io, 0, HONE_DTYPE_F32, 2, (int64_t[]){hn_features_rows(io->input[0]), 1});
  return s;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const bool one_class = hone_node_int(call->node, "one_class", 0) != 0;
  hn_svm svm;
  hone_status s = read(call->node, &svm, error);
  if (!s) s = hn_svm_widen(call, &svm, hn_features_rows(&x->desc), error);
  if (s) return s;
  const int64_t n = svm.n_vectors ? svm.n_vectors : 1;
  double *row = hn_scratch(call, HN_FEATURES_AT_ONCE * svm.width, sizeof *row, error),
         *kernel = hn_scratch(call, HN_FEATURES_AT_ONCE * n, sizeof *kernel, error);
  if (!row || !kernel) return HONE_ERROR_MEMORY;
  for (int64_t r = 0, some, rows = hn_features_rows(&x->desc); r < rows; r += some) {
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    some = hn_min(HN_FEATURES_AT_ONCE, rows - r);
    hn_load_f64(row, x, r * svm.width, some * svm.width);
    hn_svm_kernels_of(&svm, some, row, svm.n_vectors ? svm.vector : svm.coefficient, n, kernel);
    for (int64_t i = 0; i < some; i++) {
      double y = (double)svm.rho[0];
      for (int64_t k = 0; k < svm.n_vectors; k++) y += (double)svm.coefficient[k] * kernel[i * n + k];
      if (!svm.n_vectors) y += kernel[i];
      if (one_class) y = y > 0 ? 1 : -1;
      hn_store_f64(call->output[0], r + i, &y, 1);
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "coefficients", .type = HONE_ATTR_FLOATS, .required = true},
                                       {.name = "kernel_params", .type = HONE_ATTR_FLOATS},
                                       {.name = "kernel_type", .type = HONE_ATTR_STRING},
                                       {.name = "n_supports", .type = HONE_ATTR_INT},
                                       {.name = "one_class", .type = HONE_ATTR_INT},
                                       {.name = "post_transform", .type = HONE_ATTR_STRING},
                                       {.name = "rho", .type = HONE_ATTR_FLOATS, .required = true},
                                       {.name = "support_vectors", .type = HONE_ATTR_FLOATS},
                                       {0}};

HN_OP(svm_regressor) = {HN_FEATURES_OP("SVMRegressor", 1, 1), .attrs = attrs, .infer = infer,
                        .reference = reference};
