/* MatMul: products of matrices or of stacks of them, as numpy.matmul. */
#include "model/ops/product/batch.h"
#include "model/ops/product/matrix.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *a = io->input[0], *b = io->input[1];
  int64_t dim[HONE_MAX_RANK + 2];
  int32_t rank;
  if (a->dtype && b->dtype && a->dtype != b->dtype)
    return hn_op_bad(io->node, error, "operands are %s and %s", hone_dtype_name(a->dtype),
                     hone_dtype_name(b->dtype));
  hone_status status = hn_batch_infer(io->node, a, b, &rank, dim, error);
  if (!status) hn_infer_set(io, 0, a->dtype ? a->dtype : b->dtype, rank, dim);
  return status;
}

static void cost(const hone_infer *io, hone_cost *c) { hn_batch_cost(io, 0, 1, c); }

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *a = call->input[0], *b = call->input[1];
  hone_tensor *c = call->output[0];
  hone_dtype t = a->desc.dtype;
  hn_batch batch;
  hn_batch_make(&batch, &a->desc, &b->desc);
  if (hn_count(c) == 0) return HONE_OK;
  /* One matrix on the right for the whole stack: a single product of more rows. */
  bool shared = batch.rank > 0;
  for (int32_t i = 0; i < batch.rank; i++)
    shared = shared && batch.b[i] == 0 && (batch.a[i] != 0 || batch.dim[i] == 1);
  if (shared) {
    batch.m *= batch.count;
    batch.count = 1;
  }
  for (int64_t i = 0; i < batch.count; i++) {
    int64_t at_a, at_b;
    hn_batch_at(&batch, i, &at_a, &at_b);
    hone_status status =
        hn_matmul(call, t, batch.m, batch.n, batch.k, (hn_matrix){hn_at(a, at_a), batch.k, 1},
                  (hn_matrix){hn_at(b, at_b), batch.n, 1}, hn_at_mut(c, i * batch.m * batch.n), error);
    if (status) return status;
  }
  return HONE_OK;
}

HN_OP(matmul) = {HN_OP_HEAD,
                 .op_type = "MatMul",
                 .since = 1,
                 HN_INPUTS(2, 2),
                 HN_OUTPUTS(1, 1),
                 .types = HN_TYPES_FLOAT | HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_I64) |
                          HONE_TYPES(HONE_DTYPE_U32) | HONE_TYPES(HONE_DTYPE_U64),
                 .infer = infer,
                 .cost = cost,
                 .reference = reference,
                 .product = HONE_PRODUCT_MATMUL,
                 .codes = HONE_CODES_WEIGHTS,
                 .on_codes = "QLinearMatMul"};
