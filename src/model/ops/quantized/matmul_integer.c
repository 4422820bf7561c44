/* MatMulInteger: (a - a_zero_point) (b - b_zero_point) in i32; zero points for all, for each row of a, each
 * column of b. */
#include "model/ops/product/batch.h"
#include "model/ops/common/bulk.h"
#include "model/ops/product/matrix.h"

static hone_status check_zero(const hone_infer *io, uint32_t i, int64_t lines, hone_error *error) {
  if (!hn_has_input(io, i)) return HONE_OK;
  hone_status status = hn_infer_same_dtype(io, i - 2, i, error);
  int64_t n = hone_desc_count(io->input[i]);
  if (status || n < 0 || n == 1 || lines < 0) return status;
  if (io->input[i]->rank != 1)
    return hn_op_refuse(io->node, error, "a zero point of rank %d", io->input[i]->rank);
  return n == lines
             ? HONE_OK
             : hn_op_bad(io->node, error, "%lld zero points for %lld lines", (long long)n, (long long)lines);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *a = io->input[0], *b = io->input[1];
  int64_t dim[HONE_MAX_RANK + 2];
  int32_t rank;
  hone_status status = hn_batch_infer(io->node, a, b, &rank, dim, error);
  if (!status)
    status = hn_infer_dtype_in(io, 1, HONE_TYPES(HONE_DTYPE_I8) | HONE_TYPES(HONE_DTYPE_U8), error);
  if (!status) status = check_zero(io, 2, a->rank > 1 ? a->dim[a->rank - 2] : a->rank == 1 ? 1 : -1, error);
  if (!status) status = check_zero(io, 3, b->rank > 1 ? b->dim[b->rank - 1] : b->rank == 1 ? 1 : -1, error);
  if (!status) hn_infer_set(io, 0, HONE_DTYPE_I32, rank, dim);
  return status;
}

static void cost(const hone_infer *io, hone_cost *c) { hn_batch_cost(io, 0, 1, c); }

/* rows x cols bytes widened to i32, less their zero point. */
static int32_t *widen(hone_call *call, uint32_t i, int64_t at, int64_t rows, int64_t cols,
                      hone_error *error) {
  const hone_tensor *x = call->input[i], *zero = hn_call_has(call, i + 2) ? call->input[i + 2] : NULL;
  bool is_signed = x->desc.dtype == HONE_DTYPE_I8, many = zero && hn_count(zero) > 1;
  int32_t *out = hn_scratch(call, rows * cols, sizeof *out, error);
  for (int64_t r = 0; out && r < rows; r++)
    for (int64_t c = 0; c < cols; c++) {
      int64_t e = at + r * cols + c;
      int32_t v = is_signed ? ((const int8_t *)x->data)[e] : ((const uint8_t *)x->data)[e];
      out[r * cols + c] = v - (zero ? (int32_t)hn_get_i64(zero, many ? (i == 0 ? r : c) : 0) : 0);
    }
  return out;
}

static hone_status reference(hone_call *call, hone_error *error) {
  hn_batch t;
  hn_batch_make(&t, &call->input[0]->desc, &call->input[1]->desc);
  for (int64_t i = 0; i < t.count; i++) {
    int64_t at_a, at_b;
    hn_batch_at(&t, i, &at_a, &at_b);
    int32_t *a = widen(call, 0, at_a, t.m, t.k, error), *b = a ? widen(call, 1, at_b, t.k, t.n, error) : NULL;
    if (!b) return HONE_ERROR_MEMORY;
    hone_status status = hn_matmul(call, HONE_DTYPE_I32, t.m, t.n, t.k, (hn_matrix){a, t.k, 1},
                                   (hn_matrix){b, t.n, 1}, hn_at_mut(call->output[0], i * t.m * t.n), error);
    if (status) return status;
  }
  return HONE_OK;
}

HN_OP(matmul_integer) = {HN_OP_HEAD,
                         .op_type = "MatMulInteger",
                         .since = 10,
                         HN_INPUTS(2, 4),
                         HN_OUTPUTS(1, 1),
                         .types = HONE_TYPES(HONE_DTYPE_I8) | HONE_TYPES(HONE_DTYPE_U8),
                         .infer = infer,
                         .cost = cost,
                         .reference = reference,
                         .flags = HONE_OP_CODES};
