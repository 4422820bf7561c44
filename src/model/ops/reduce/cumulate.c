/* Running sums and products along an axis (cumulate.h). */
#include "model/ops/reduce/cumulate.h"

#include "model/ops/common/convert.h"
#include "model/ops/common/move.h"

static hone_status axis_of(const hone_node *node, const hone_tensor *axis, int32_t rank, int32_t *out,
                           hone_error *error) {
  if (hn_count(axis) != 1)
    return hn_op_bad(node, error, "axis holds %lld elements", (long long)hn_count(axis));
  return hn_axis(hn_get_i64(axis, 0), rank, out, error);
}

hone_status hn_cumulate_infer(const hone_infer *io, hone_error *error) {
  int32_t axis;
  hone_dtype t = io->input[1]->dtype;
  if (t && t != HONE_DTYPE_I32 && t != HONE_DTYPE_I64)
    return hn_op_bad(io->node, error, "axis is %s", hone_dtype_name(t));
  if (io->value[1] && io->input[0]->rank >= 0) {
    hone_status status = axis_of(io->node, io->value[1], io->input[0]->rank, &axis, error);
    if (status) return status;
  }
  return hn_infer_same(io, error);
}

/* One line of elements `step` apart, of the type that sums are kept in. */
#define LINE(name, T)                                                                                        \
  static void name(const T *x, T *y, int64_t n, int64_t step, bool exclusive, bool product) {                \
    T total = product;                                                                                       \
    for (int64_t k = 0; k < n; k++, x += step, y += step) {                                                  \
      const T before = total;                                                                                \
      total = product ? total * *x : total + *x;                                                             \
      *y = exclusive ? before : total;                                                                       \
    }                                                                                                        \
  }
LINE(line_f64, double)
LINE(line_u64, uint64_t)

hone_status hn_cumulate_run(hone_call *call, bool product, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  const hone_tensor_desc *d = &x->desc;
  int32_t axis;
  hone_status status = axis_of(call->node, call->input[1], d->rank, &axis, error);
  if (status || hn_count(x) == 0) return status;
  bool exclusive = hone_node_int(call->node, "exclusive", 0) != 0,
       reverse = hone_node_int(call->node, "reverse", 0) != 0;
  bool real = hone_dtype_is_float(d->dtype);
  int64_t outer = hn_product(d->dim, 0, axis), n = d->dim[axis],
          inner = hn_product(d->dim, axis + 1, d->rank);
  for (int64_t line = 0; line < outer * inner; line++) {
    int64_t base = line / inner * n * inner + line % inner;
    double total = product;
    uint64_t whole = product;
    if (line % 256 == 0) {
      status = hn_call_check(call, error);
      if (status) return status;
    }
    const int64_t first = base + (reverse ? n - 1 : 0) * inner, step = reverse ? -inner : inner;
    if (d->dtype == HONE_DTYPE_F64) {
      line_f64((const double *)x->data + first, (double *)y->data + first, n, step, exclusive, product);
      continue;
    }
    if (d->dtype == HONE_DTYPE_I64 || d->dtype == HONE_DTYPE_U64) {
      line_u64((const uint64_t *)x->data + first, (uint64_t *)y->data + first, n, step, exclusive, product);
      continue;
    }
    for (int64_t k = 0; k < n; k++) {
      int64_t at = base + (reverse ? n - 1 - k : k) * inner;
      double before = total;
      uint64_t whole_before = whole;
      if (real) {
        const double v = hn_get_f64(x, at);
        total = product ? total * v : total + v;
        hn_set_f64(y, at, exclusive ? before : total);
      } else {
        const uint64_t v = (uint64_t)hn_get_i64(x, at);
        whole = product ? whole * v : whole + v;
        hn_set_i64(y, at, (int64_t)(exclusive ? whole_before : whole));
      }
    }
  }
  return HONE_OK;
}
