/* How scattered updates meet what is there. */
#include "model/ops/indexing/combine.h"
#include "model/ops/common/convert.h"

hone_status hn_combine_of(const hone_node *node, hn_combine *out, hone_error *error) {
  static const char *const names[] = {"none", "add", "mul", "max", "min"};
  const char *name = hone_node_string(node, "reduction", "none");
  for (int i = 0; i < 5; i++)
    if (strcmp(name, names[i]) == 0 && (i < 3 || hone_node_opset(node) >= 18)) {
      *out = (hn_combine)i;
      return HONE_OK;
    }
  return hn_op_bad(node, error, "reduction is '%s'", name);
}

static double combine_f64(hn_combine how, double a, double b) {
  switch (how) {
  case HN_COMBINE_ADD: return a + b;
  case HN_COMBINE_MUL: return a * b;
  case HN_COMBINE_MAX: return b > a || b != b ? b : a;
  default: return b < a || b != b ? b : a;
  }
}

static int64_t combine_i64(hn_combine how, bool is_unsigned, int64_t a, int64_t b) {
  bool less = is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
  switch (how) {
  case HN_COMBINE_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
  case HN_COMBINE_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
  case HN_COMBINE_MAX: return less ? b : a;
  default: return less ? a : b;
  }
}

hone_status hn_combine_apply(const hone_node *node, hn_combine how, hone_dtype t, void *dst, const void *src,
                             int64_t n, hone_error *error) {
  if (how == HN_COMBINE_NONE) {
    hn_copy_elements(dst, src, n, t);
    return HONE_OK;
  }
  if (t == HONE_DTYPE_STRING) return hn_op_refuse(node, error, "reduction of strings");
  for (int64_t i = 0; i < n; i++) {
    if (hone_dtype_is_float(t)) {
      double a, b;
      hn_read_f64(&a, dst, t, i, 1);
      hn_read_f64(&b, src, t, i, 1);
      a = combine_f64(how, a, b);
      hn_write_f64(dst, t, i, &a, 1);
    } else {
      int64_t a, b;
      hn_read_i64(&a, dst, t, i, 1);
      hn_read_i64(&b, src, t, i, 1);
      a = combine_i64(how, t == HONE_DTYPE_U64, a, b);
      hn_write_i64(dst, t, i, &a, 1);
    }
  }
  return HONE_OK;
}
