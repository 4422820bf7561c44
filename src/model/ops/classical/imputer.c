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

/* value[n]: of the features, of which x begins with the first, or one for all. Every NaN is the same. */
#define REPLACE(NAME, T, SAME)                                                                               \
  static void NAME(T *restrict y, const T *restrict x, int64_t elements, const T *restrict value, int64_t n, \
                   T missing) {                                                                              \
    const T all = value[0];                                                                                  \
    if (n == 1)                                                                                              \
      for (int64_t i = 0; i < elements; i++) y[i] = SAME(x[i], missing) ? all : x[i];                        \
    for (; n > 1 && elements > 0; elements -= n, x += n, y += n)                                             \
      for (int64_t i = 0; i < n; i++) y[i] = SAME(x[i], missing) ? value[i] : x[i];                          \
  }
#define SAME_REAL(a, b) (((a) == (b)) | (((a) != (a)) & ((b) != (b))))
#define SAME_WHOLE(a, b) ((a) == (b))
REPLACE(replace_f32, float, SAME_REAL)
REPLACE(replace_f64, double, SAME_REAL)
REPLACE(replace_i32, int32_t, SAME_WHOLE)
REPLACE(replace_i64, int64_t, SAME_WHOLE)
#undef SAME_REAL
#undef SAME_WHOLE
#undef REPLACE

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  const hone_dtype dtype = x->desc.dtype;
  const bool is_float = hone_dtype_is_float(dtype);
  size_t given;
  const float *reals = hone_node_floats(call->node, "imputed_value_floats", &given);
  const int64_t *wholes =
      hone_node_ints(call->node, "imputed_value_int64s", is_float ? &(size_t){0} : &given);
  const float real = hone_node_float(call->node, "replaced_value_float", 0);
  const int64_t whole = hone_node_int(call->node, "replaced_value_int64", 0), n = (int64_t)given;
  /* In X's type. A number that it has not is missing nowhere. */
  hone_tensor value = {hone_desc(dtype, 1, &n), hn_scratch(call, n, sizeof(int64_t), error)};
  if (!value.data) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < n; i++)
    is_float ? hn_set_f64(&value, i, (double)reals[i]) : hn_set_i64(&value, i, wholes[i]);
  const int64_t rows = n == 1 ? HN_STOP_EVERY : n * hn_div_up(HN_STOP_EVERY, n);
  for (int64_t i = 0, some, count = hn_count(x); i < count; i += some) {
    some = hn_min(rows, count - i);
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    void *to = hn_at_mut(y, i);
    const void *from = hn_at(x, i), *values = value.data;
    switch (dtype) {
    case HONE_DTYPE_F32: replace_f32(to, from, some, values, n, real); break;
    case HONE_DTYPE_F64: replace_f64(to, from, some, values, n, (double)real); break;
    case HONE_DTYPE_I32:
      if (whole == (int32_t)whole)
        replace_i32(to, from, some, values, n, (int32_t)whole);
      else
        hn_copy_elements(to, from, some, dtype);
      break;
    default: replace_i64(to, from, some, values, n, whole);
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "imputed_value_floats", .type = HONE_ATTR_FLOATS},
                                       {.name = "imputed_value_int64s", .type = HONE_ATTR_INTS},
                                       {.name = "replaced_value_float", .type = HONE_ATTR_FLOAT},
                                       {.name = "replaced_value_int64", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(imputer) = {HN_FEATURES_OP("Imputer", 1, 1), .attrs = attrs, .infer = infer, .reference = reference};
