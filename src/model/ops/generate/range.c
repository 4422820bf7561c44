/* Range: start, start + delta... up to, without, limit. 16-bit floats are counted and computed wider
 * (stash_type). */
#include "model/ops/common/axes.h"
#include "model/ops/common/convert.h"

static bool narrow(hone_dtype t) { return t == HONE_DTYPE_F16 || t == HONE_DTYPE_BF16; }

/* Number of elements; -1: too many. */
static int64_t length(const hone_tensor *start, const hone_tensor *limit, const hone_tensor *delta) {
  if (narrow(start->desc.dtype)) {
    const float a = (float)hn_get_f64(start, 0), b = (float)hn_get_f64(limit, 0);
    const float n = ceilf((b - a) / (float)hn_get_f64(delta, 0));
    return n > 0 ? hn_trunc_i64(n) == INT64_MAX ? -1 : (int64_t)n : 0;
  }
  if (hone_dtype_is_float(start->desc.dtype)) {
    double n = ceil((hn_get_f64(limit, 0) - hn_get_f64(start, 0)) / hn_get_f64(delta, 0));
    return !(n > 0) ? 0 : n >= 0x1p62 ? -1 : (int64_t)n;
  }
  int64_t a = hn_get_i64(start, 0), b = hn_get_i64(limit, 0), d = hn_get_i64(delta, 0);
  if (d > 0 ? a >= b : a <= b) return 0;
  uint64_t span = d > 0 ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b;
  uint64_t step = d > 0 ? (uint64_t)d : 0u - (uint64_t)d, n = span / step + (span % step != 0);
  return n > INT64_MAX ? -1 : (int64_t)n;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  int64_t n = HONE_DIM_UNKNOWN;
  const hone_tensor *v[3];
  const int64_t stash = hone_node_int(io->node, "stash_type", HONE_DTYPE_F32);
  if (narrow(io->input[0]->dtype) && hone_node_opset(io->node) < 27)
    return hn_op_bad(io->node, error, "16-bit floats need opset 27");
  if (narrow(io->input[0]->dtype) && stash != HONE_DTYPE_F32)
    return hn_op_refuse(io->node, error, "stash_type is %lld, only 1 (float) is implemented",
                        (long long)stash);
  for (uint32_t i = 0; i < 3; i++) {
    const hone_tensor_desc *d = io->input[i];
    if (d->dtype && io->input[0]->dtype && d->dtype != io->input[0]->dtype)
      return hn_op_bad(io->node, error, "operands are %s and %s", hone_dtype_name(io->input[0]->dtype),
                       hone_dtype_name(d->dtype));
    hone_status status = hn_scalar_infer(io, i, &v[i], error);
    if (status) return status;
  }
  if (v[2] && hn_get_f64(v[2], 0) == 0) return hn_op_bad(io->node, error, "delta is 0");
  if (v[0] && v[1] && v[2]) {
    n = length(v[0], v[1], v[2]);
    if (n < 0) return hn_op_bad(io->node, error, "the result is too large");
  }
  hn_infer_set(io, 0, io->input[0]->dtype, 1, &n);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  hone_tensor *y = call->output[0];
  bool real = hone_dtype_is_float(y->desc.dtype);
  double start = hn_get_f64(call->input[0], 0), delta = hn_get_f64(call->input[2], 0);
  uint64_t first = (uint64_t)hn_get_i64(call->input[0], 0), step = (uint64_t)hn_get_i64(call->input[2], 0);
  for (int64_t i = 0, n = hn_count(y); i < n; i++) {
    if (i % HN_STOP_EVERY == 0) {
      hone_status status = hn_call_check(call, error);
      if (status) return status;
    }
    if (real)
      hn_set_f64(y, i, start + (double)i * delta);
    else
      hn_set_i64(y, i, (int64_t)(first + (uint64_t)i * step));
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "stash_type", .type = HONE_ATTR_INT, .since = 27}, {0}};

HN_OP(range) = {HN_OP_HEAD,
                .op_type = "Range",
                .since = 11,
                HN_INPUTS(3, 3),
                HN_OUTPUTS(1, 1),
                .types = HN_TYPES_FLOAT | HONE_TYPES(HONE_DTYPE_I16) | HONE_TYPES(HONE_DTYPE_I32) |
                         HONE_TYPES(HONE_DTYPE_I64),
                .attrs = attrs,
                .infer = infer,
                .reference = reference,
                .host_inputs = 1u << 0 | 1u << 1 | 1u << 2};
