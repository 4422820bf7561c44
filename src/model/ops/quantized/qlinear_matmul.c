/* QLinearMatMul: exact integer products of matrices less their zero points, rescaled as in QLinearConv.
 * Scales of a may differ by row, scales of b by column. */
#include "model/ops/quantized/quant_conv.h"

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO };

/* Matrices as MatMul sees them: a vector gets a one before (a) or behind (b). */
static hone_tensor_desc as_matrix(const hone_tensor_desc *d, bool left) {
  hone_tensor_desc m = *d;
  if (d->rank != 1) return m;
  m.rank = 2;
  m.dim[left ? 0 : 1] = 1;
  m.dim[left ? 1 : 0] = d->dim[0];
  return m;
}

/* Batch dimensions broadcast; *y gets the full product's shape, with the ones of vectors still in. */
static hone_status product_shape(const hone_node *node, const hone_tensor_desc *a, const hone_tensor_desc *b,
                                 hone_tensor_desc *y, hone_error *error) {
  hone_tensor_desc batch = *a, other = *b;
  int64_t ka = a->dim[a->rank - 1], kb = b->dim[b->rank - 2];
  if (ka >= 0 && kb >= 0 && ka != kb)
    return hn_op_bad(node, error, "the matrices have %lld columns and %lld rows", (long long)ka,
                     (long long)kb);
  batch.rank -= 2;
  other.rank -= 2;
  hone_status s = hn_broadcast_dims(&batch, &other, error);
  if (s) return s;
  *y = batch;
  y->dim[y->rank++] = a->dim[a->rank - 2];
  y->dim[y->rank++] = b->dim[b->rank - 1];
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *a = io->input[A], *b = io->input[B];
  hone_dtype out = io->input[Y_ZERO]->dtype;
  hone_status s = hn_infer_dtype_in(io, B, HN_TYPES_8BIT, error);
  if (!s) s = hn_infer_dtype_in(io, Y_ZERO, HN_TYPES_8BIT, error);
  if (!s) s = hn_infer_same_dtype(io, A, A_ZERO, error);
  if (!s) s = hn_infer_same_dtype(io, B, B_ZERO, error);
  if (!s) s = hn_infer_quant_param(io, Y_SCALE, 1, error);
  if (!s) s = hn_infer_quant_param(io, Y_ZERO, 1, error);
  if (s) return s;
  if (a->rank == 0 || b->rank == 0) return hn_op_bad(io->node, error, "an operand has rank 0");
  if (a->rank < 0 || b->rank < 0) return hn_infer_set(io, 0, out, -1, NULL), HONE_OK;
  hone_tensor_desc am = as_matrix(a, true), bm = as_matrix(b, false), y;
  if ((s = product_shape(io->node, &am, &bm, &y, error))) return s;
  int64_t dims[HONE_MAX_RANK];
  int32_t rank = 0;
  for (int32_t i = 0; i < y.rank; i++) {
    bool added = (i == y.rank - 2 && a->rank == 1) || (i == y.rank - 1 && b->rank == 1);
    if (!added) dims[rank++] = y.dim[i];
  }
  hn_infer_set(io, 0, out, rank, dims);
  return HONE_OK;
}

/* A parameter: one value, one a row (or column), or one a row of every matrix. */
static hone_status check_param(const hone_call *call, uint32_t i, int64_t lines, int64_t matrices,
                               hone_error *error) {
  int64_t n = hn_count(call->input[i]);
  if (n == 1 || n == lines || n == lines * matrices) return HONE_OK;
  return hn_op_bad(call->node, error, "input %u has %lld values", i, (long long)n);
}

static double param(const hone_tensor *t, int64_t lines, int64_t matrix, int64_t line) {
  int64_t n = hn_count(t);
  return hn_get_f64(t, n == 1 ? 0 : n == lines ? line : matrix * lines + line);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *a = call->input[A], *b = call->input[B];
  hone_tensor *y = call->output[0];
  hone_tensor_desc am = as_matrix(&a->desc, true), bm = as_matrix(&b->desc, false), ym;
  hone_status s = product_shape(call->node, &am, &bm, &ym, error);
  if (s) return s;
  int64_t rows = am.dim[am.rank - 2], depth = am.dim[am.rank - 1], cols = bm.dim[bm.rank - 1];
  int64_t a_count = hn_dims(&am, 0, am.rank - 2), b_count = hn_dims(&bm, 0, bm.rank - 2);
  for (uint32_t i = A_SCALE; i <= A_ZERO && !s; i++) s = check_param(call, i, rows, a_count, error);
  for (uint32_t i = B_SCALE; i <= B_ZERO && !s; i++) s = check_param(call, i, cols, b_count, error);
  if (s) return s;
  double lo, hi, zero = hn_get_f64(call->input[Y_ZERO], 0);
  float y_scale = (float)hn_get_f64(call->input[Y_SCALE], 0);
  if (!hn_quant_range(y->desc.dtype, &lo, &hi)) return hn_op_refuse(call->node, error, "the output dtype");
  double *row = hn_scratch(call, cols, sizeof *row, error),
         *line = row ? hn_scratch(call, cols, sizeof *line, error) : NULL;
  double *b_zero = line ? hn_scratch(call, cols, sizeof *b_zero, error) : NULL;
  if (!b_zero) return HONE_ERROR_MEMORY;
  /* Which matrix of a and of b belongs to a matrix of y: broadcasting over the batch dimensions. */
  hone_tensor_desc batch = ym;
  hone_tensor ab = {am, NULL}, bb = {bm, NULL};
  batch.rank -= 2;
  ab.desc.rank -= 2;
  bb.desc.rank -= 2;
  const hone_tensor *pair[2] = {&ab, &bb};
  hn_iter it;
  hn_iter_init(&it, &batch, pair, 2);
  for (int64_t p = 0; p < it.count; p++, hn_iter_next(&it)) {
    int64_t pa = it.at[0], pb = it.at[1];
    for (int64_t j = 0; j < cols; j++) b_zero[j] = param(call->input[B_ZERO], cols, pb, j);
    for (int64_t i = 0; i < rows; i++) {
      if (call->stopped(call)) return HONE_ERROR_CANCELLED;
      for (int64_t j = 0; j < cols; j++) row[j] = 0;
      double a_zero = param(call->input[A_ZERO], rows, pa, i);
      for (int64_t k = 0; k < depth; k++) {
        double v = hn_get_f64(a, (pa * rows + i) * depth + k) - a_zero;
        hn_load_f64(line, b, (pb * depth + k) * cols, cols);
        for (int64_t j = 0; j < cols; j++) row[j] += v * (line[j] - b_zero[j]);
      }
      float a_scale = (float)param(call->input[A_SCALE], rows, pa, i);
      for (int64_t j = 0; j < cols; j++) {
        float scale = a_scale * (float)param(call->input[B_SCALE], cols, pb, j) / y_scale;
        row[j] = hn_saturate((double)rintf((float)row[j] * scale) + zero, lo, hi);
      }
      hn_store_f64(y, (p * rows + i) * cols, row, cols);
    }
  }
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const hone_tensor_desc *a = io->input[A];
  double depth = a->rank > 0 && a->dim[a->rank - 1] > 0 ? (double)a->dim[a->rank - 1] : 0;
  hn_cost_macs(cost, io->output[0] ? hn_known_count(io->output[0]) * depth : 0);
}

static const hone_codes_port ports[] = {{A, A_SCALE, A_ZERO, HONE_CODES_AXIS_ROW},
                                        {B, B_SCALE, B_ZERO, HONE_CODES_AXIS_COLUMN},
                                        {HONE_CODES_RESULT, Y_SCALE, Y_ZERO, HONE_CODES_AXIS_ROW},
                                        {0}};

HN_OP(qlinear_matmul) = {HN_OP_HEAD,
                         .op_type = "QLinearMatMul",
                         .since = 10,
                         HN_INPUTS(8, 8),
                         HN_OUTPUTS(1, 1),
                         .types = HN_TYPES_8BIT,
                         .infer = infer,
                         .cost = cost,
                         .reference = reference,
                         .flags = HONE_OP_CODES,
                         .ports = ports};
