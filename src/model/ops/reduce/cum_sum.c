/* CumSum: running sums along an axis, with or without the own element, from either end. Floats accumulate in
 * f64. */
#include "model/ops/common/convert.h"
#include "model/ops/common/move.h"

static hone_status axis_of(const hone_node *node, const hone_tensor *axis, int32_t rank, int32_t *out,
                           hone_error *error) {
  if (hn_count(axis) != 1)
    return hn_op_bad(node, error, "axis holds %lld elements", (long long)hn_count(axis));
  return hn_axis(hn_get_i64(axis, 0), rank, out, error);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
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

static hone_status reference(hone_call *call, hone_error *error) {
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
    double sum = 0;
    uint64_t whole = 0;
    if (line % 256 == 0) {
      status = hn_call_check(call, error);
      if (status) return status;
    }
    for (int64_t k = 0; k < n; k++) {
      int64_t at = base + (reverse ? n - 1 - k : k) * inner;
      double before = sum;
      uint64_t whole_before = whole;
      if (real) {
        sum += hn_get_f64(x, at);
        hn_set_f64(y, at, exclusive ? before : sum);
      } else {
        whole += (uint64_t)hn_get_i64(x, at);
        hn_set_i64(y, at, (int64_t)(exclusive ? whole_before : whole));
      }
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "exclusive", .type = HONE_ATTR_INT}, {.name = "reverse", .type = HONE_ATTR_INT}, {0}};

HN_OP(cum_sum) = {HN_OP_HEAD,
                  .op_type = "CumSum",
                  .since = 11,
                  HN_INPUTS(2, 2),
                  HN_OUTPUTS(1, 1),
                  .types = HN_TYPES_FLOAT | HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_I64) |
                           HONE_TYPES(HONE_DTYPE_U32) | HONE_TYPES(HONE_DTYPE_U64),
                  .attrs = attrs,
                  .infer = infer,
                  .reference = reference,
                  .host_inputs = 1u << 1};
