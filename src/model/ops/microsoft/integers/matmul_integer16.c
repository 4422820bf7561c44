/* MatMulInteger16: products of stacks of matrices of 16-bit integers, as MatMul has them; sums are i32 modulo
 * 2^32, or u32 of two unsigned matrices. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"
#include "model/ops/product/batch.h"
#include "model/ops/product/matrix.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *a = io->input[0], *b = io->input[1];
  int64_t dim[HONE_MAX_RANK + 2];
  int32_t rank;
  hone_status s = hn_batch_infer(io->node, a, b, &rank, dim, error);
  if (!s) s = hn_infer_dtype_in(io, 1, HONE_TYPES(HONE_DTYPE_I16) | HONE_TYPES(HONE_DTYPE_U16), error);
  const bool natural = a->dtype == HONE_DTYPE_U16 && b->dtype == HONE_DTYPE_U16;
  if (!s) hn_infer_set(io, 0, natural ? HONE_DTYPE_U32 : HONE_DTYPE_I32, rank, dim);
  return s;
}

static void cost(const hone_infer *io, hone_cost *c) { hn_batch_cost(io, 0, 1, c); }

static void widen(int32_t *out, const hone_tensor *x, int64_t at, int64_t n) {
  for (int64_t k = 0; k < n; k++) out[k] = (int32_t)hn_get_i64(x, at + k);
}

static hone_status reference(hone_call *call, hone_error *error) {
  hn_batch t;
  hn_batch_make(&t, &call->input[0]->desc, &call->input[1]->desc);
  int32_t *a = hn_scratch(call, t.m * t.k, sizeof *a, error); /* of one matrix after the other */
  int32_t *b = a ? hn_scratch(call, t.k * t.n, sizeof *b, error) : NULL;
  if (!b) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < t.count; i++) {
    int64_t at_a, at_b;
    hn_batch_at(&t, i, &at_a, &at_b);
    widen(a, call->input[0], at_a, t.m * t.k);
    widen(b, call->input[1], at_b, t.k * t.n);
    const hone_status s = hn_matmul(call, HONE_DTYPE_I32, t.m, t.n, t.k, (hn_matrix){a, t.k, 1},
                                    (hn_matrix){b, t.n, 1}, hn_at_mut(call->output[0], i * t.m * t.n), error);
    if (s) return s;
  }
  return HONE_OK;
}

HN_OP(matmul_integer16) = {HONE_DESC_HEAD(hone_op_desc),
                           .domain = "com.microsoft",
                           .op_type = "MatMulInteger16",
                           .since = 1,
                           HN_INPUTS(2, 2),
                           HN_OUTPUTS(1, 1),
                           .types = HONE_TYPES(HONE_DTYPE_I16) | HONE_TYPES(HONE_DTYPE_U16),
                           .infer = infer,
                           .cost = cost,
                           .reference = reference};
