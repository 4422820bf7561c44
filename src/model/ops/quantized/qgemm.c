/* QGemm: alpha a_scale b_scale (A' B' + C), where A' and B' are the codes less their zero points and may be
 * transposed; C is i32 and broadcasts to the product. Without y_scale the result is f32, else codes. */
#include "model/ops/common/move.h"
#include "model/ops/product/matrix.h"
#include "model/ops/quantized/quant_conv.h"

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, C, Y_SCALE, Y_ZERO };

static hone_status check_types(const hone_infer *io, hone_error *error) {
  hone_status s = hn_infer_dtype_in(io, B, HN_TYPES_8BIT, error);
  if (!s) s = hn_infer_same_dtype(io, A, A_ZERO, error);
  if (!s) s = hn_infer_same_dtype(io, B, B_ZERO, error);
  if (!s) s = hn_infer_dtype_in(io, C, HONE_TYPES(HONE_DTYPE_I32), error);
  static const uint32_t scales[] = {A_SCALE, B_SCALE, Y_SCALE};
  for (size_t i = 0; i < sizeof scales / sizeof *scales && !s; i++)
    s = hn_infer_dtype_in(io, scales[i], HONE_TYPES(HONE_DTYPE_F32), error);
  return s;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *a = io->input[A], *b = io->input[B];
  const bool ta = hone_node_int(io->node, "transA", 0) != 0, tb = hone_node_int(io->node, "transB", 0) != 0;
  hone_tensor_desc y = {.rank = 2, .dim = {HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN}};
  hone_status s = check_types(io, error);
  if (s) return s;
  if ((a->rank >= 0 && a->rank != 2) || (b->rank >= 0 && b->rank != 2))
    return hn_op_bad(io->node, error, "A has rank %d and B rank %d, both must be 2", a->rank, b->rank);
  if (a->rank == 2) y.dim[0] = a->dim[ta];
  if (b->rank == 2) y.dim[1] = b->dim[!tb];
  const int64_t ka = a->rank == 2 ? a->dim[!ta] : -1, kb = b->rank == 2 ? b->dim[tb] : -1;
  if (ka >= 0 && kb >= 0 && ka != kb)
    return hn_op_bad(io->node, error, "A has %lld in its inner dimension, B %lld", (long long)ka,
                     (long long)kb);
  if (hn_has_input(io, C) && io->input[C]->rank >= 0) {
    hone_tensor_desc sum = y;
    if ((s = hn_broadcast_dims(&sum, io->input[C], error))) return s;
    bool fits = sum.rank == 2;
    for (int i = 0; i < 2; i++) fits &= y.dim[i] < 0 || sum.dim[i] < 0 || sum.dim[i] == y.dim[i];
    if (!fits) return hn_op_bad(io->node, error, "C does not broadcast to the product");
  }
  static const uint32_t single[] = {A_SCALE, A_ZERO, Y_SCALE, Y_ZERO};
  for (size_t i = 0; i < sizeof single / sizeof *single && !s; i++)
    s = hn_infer_quant_param(io, single[i], 1, error);
  for (uint32_t i = B_SCALE; i <= B_ZERO && !s; i++) s = hn_infer_quant_param(io, i, y.dim[1], error);
  if (s) return s;
  const hone_dtype out = !hn_has_input(io, Y_SCALE) ? HONE_DTYPE_F32
                         : hn_has_input(io, Y_ZERO) ? io->input[Y_ZERO]->dtype
                                                    : a->dtype;
  hn_infer_set(io, 0, out, 2, y.dim);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const hone_tensor_desc *a = io->input[A];
  const int64_t k = a->rank == 2 ? a->dim[hone_node_int(io->node, "transA", 0) ? 0 : 1] : 0;
  hn_cost_macs(cost, io->output[0] && k > 0 ? hn_known_count(io->output[0]) * (double)k : 0);
}

/* Codes less their zero points; one zero point, or one a column of B' (dimension `axis`). */
static int32_t *widened(hone_call *call, uint32_t i, int axis, hone_error *error) {
  const hone_tensor *x = call->input[i];
  const hn_quant_param zero = hn_quant_param_of(hn_call_has(call, i + 2) ? call->input[i + 2] : NULL);
  const int64_t rows = x->desc.dim[0], cols = x->desc.dim[1];
  int32_t *out = hn_scratch(call, rows * cols, sizeof *out, error);
  for (int64_t r = 0; out && r < rows; r++)
    for (int64_t c = 0; c < cols; c++)
      out[r * cols + c] = (int32_t)hn_get_i64(x, r * cols + c) - (int32_t)hn_quant_at(zero, axis ? c : r);
  return out;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const bool ta = hone_node_int(call->node, "transA", 0) != 0,
             tb = hone_node_int(call->node, "transB", 0) != 0;
  const hone_tensor *c = hn_call_has(call, C) ? call->input[C] : NULL;
  hone_tensor *y = call->output[0];
  const int64_t m = y->desc.dim[0], n = y->desc.dim[1], k = call->input[A]->desc.dim[!ta];
  const int32_t *a = widened(call, A, 1, error), *b = a ? widened(call, B, !tb, error) : NULL;
  int32_t *sums = b ? hn_scratch(call, m * n, sizeof *sums, error) : NULL;
  double *row = sums ? hn_scratch(call, n, sizeof *row, error) : NULL;
  if (!row) return HONE_ERROR_MEMORY;
  hone_status s = hn_matmul(call, HONE_DTYPE_I32, m, n, k, (hn_matrix){a, ta ? 1 : k, ta ? m : 1},
                            (hn_matrix){b, tb ? 1 : n, tb ? k : 1}, sums, error);
  if (s) return s;
  const bool codes = hn_call_has(call, Y_SCALE);
  const float alpha = hone_node_float(call->node, "alpha", 1),
              by = alpha * (float)hn_get_f64(call->input[A_SCALE], 0),
              y_scale = codes ? (float)hn_get_f64(call->input[Y_SCALE], 0) : 1;
  const double zero = hn_call_has(call, Y_ZERO) ? hn_get_f64(call->input[Y_ZERO], 0) : 0;
  const hn_quant_param b_scale = hn_quant_param_of(call->input[B_SCALE]);
  double lo = 0, hi = 0;
  if (codes && !hn_quant_range(y->desc.dtype, &lo, &hi))
    return hn_op_refuse(call->node, error, "the output dtype");
  const int64_t c_cols = c && c->desc.rank > 0 ? c->desc.dim[c->desc.rank - 1] : 1,
                c_rows = c && c->desc.rank > 1 ? c->desc.dim[0] : 1;
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      const int64_t at = (c_rows > 1 ? i * c_cols : 0) + (c_cols > 1 ? j : 0);
      const int32_t sum = (int32_t)((uint32_t)sums[i * n + j] + (c ? (uint32_t)hn_get_i64(c, at) : 0));
      const float scale = by * (float)hn_quant_at(b_scale, j);
      row[j] = codes ? hn_saturate((double)rintf((float)sum * (scale / y_scale)) + zero, lo, hi)
                     : (double)((float)sum * scale);
    }
    hn_store_f64(y, i * n, row, n);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{"alpha", HONE_ATTR_FLOAT, false, 0, 0},
                                       {"transA", HONE_ATTR_INT, false, 0, 0},
                                       {"transB", HONE_ATTR_INT, false, 0, 0},
                                       {0}};

static const hone_codes_port ports[] = {{A, A_SCALE, A_ZERO, HONE_CODES_AXIS_NONE},
                                        {B, B_SCALE, B_ZERO, HONE_CODES_AXIS_COLUMN},
                                        {HONE_CODES_RESULT, Y_SCALE, Y_ZERO, HONE_CODES_AXIS_NONE},
                                        {0}};

HN_OP(qgemm) = {HONE_DESC_HEAD(hone_op_desc),
                .domain = "com.microsoft",
                .op_type = "QGemm",
                .since = 1,
                HN_INPUTS(6, 9),
                HN_OUTPUTS(1, 1),
                .types = HN_TYPES_8BIT,
                .attrs = attrs,
                .infer = infer,
                .cost = cost,
                .reference = reference,
                .flags = HONE_OP_CODES,
                .ports = ports};
