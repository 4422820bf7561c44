/* Imputer: a value that stands for a missing one is replaced by its feature's, or by the one for all. */
#include "model/ops/classical/features.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  size_t reals, wholes;
  hone_node_floats(io->node, "imputed_value_floats", &reals);
  hone_node_ints(io->node, "imputed_value_int64s", &wholes);
  const bool is_float = hone_dtype_is_float(x->dtype);
  const int64_t n = (int64_t)(is_float ? reals : wholes);
  if (x->dtype && !n)
    return hn_op_bad(io->node, error, "X is %s, imputed_value_%s is not given", hone_dtype_name(x->dtype),
                     is_float ? "floats" : "int64s");
  if (x->dtype && x->rank > 0 && n > 1 && hn_features_width(x) >= 0 && hn_features_width(x) != n)
    return hn_op_bad(io->node, error, "X has %lld features, %lld values given",
                     (long long)hn_features_width(x), (long long)n);
  const hone_status s = hn_features_rank(io, error);
  if (!s) hn_infer_set(io, 0, x->dtype, x->rank, x->dim);
  return s;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  const bool is_float = hone_dtype_is_float(x->desc.dtype);
  size_t n;
  const float *reals = hone_node_floats(call->node, "imputed_value_floats", &n);
  const int64_t *wholes = hone_node_ints(call->node, "imputed_value_int64s", is_float ? &(size_t){0} : &n);
  const double real = (double)hone_node_float(call->node, "replaced_value_float", 0);
  const int64_t whole = hone_node_int(call->node, "replaced_value_int64", 0);
  (void)error;
  hn_copy_elements(y->data, x->data, hn_count(x), x->desc.dtype);
  for (int64_t i = 0, count = hn_count(x); i < count; i++) {
    const int64_t k = i % (int64_t)n;
    if (i % 4096 == 0 && call->stopped(call)) return HONE_ERROR_CANCELLED;
    if (is_float && hn_same_number(hn_get_f64(x, i), real)) hn_set_f64(y, i, (double)reals[k]);
    if (!is_float && hn_get_i64(x, i) == whole) hn_set_i64(y, i, wholes[k]);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "imputed_value_floats", .type = HONE_ATTR_FLOATS},
                                       {.name = "imputed_value_int64s", .type = HONE_ATTR_INTS},
                                       {.name = "replaced_value_float", .type = HONE_ATTR_FLOAT},
                                       {.name = "replaced_value_int64", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(imputer) = {HN_FEATURES_OP("Imputer", 1, 1), .attrs = attrs, .infer = infer, .reference = reference};
