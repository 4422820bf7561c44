#include "model/ops/quantized/integer_matmul.h"

#include "model/ops/product/batch.h"
#include "model/ops/product/matrix.h"

hone_status hn_integer_matmul_infer(const hone_infer *io, uint32_t b, uint32_t b_scale, uint32_t b_zero,
                                    uint32_t bias, hone_error *error) {
  int64_t dim[HONE_MAX_RANK + 2];
  int32_t rank;
  const hone_tensor_desc *bd = io->input[b];
  const int64_t columns = bd->rank > 1 ? bd->dim[bd->rank - 1] : bd->rank == 1 ? 1 : -1;
  hone_status s = hn_batch_infer(io->node, io->input[0], bd, &rank, dim, error);
  if (!s) s = hn_infer_dtype_in(io, b, HN_TYPES_8BIT, error);
  if (!s) s = hn_infer_dtype_in(io, b_scale, HONE_TYPES(HONE_DTYPE_F32), error);
  if (!s) s = hn_infer_dtype_in(io, bias, HONE_TYPES(HONE_DTYPE_F32), error);
  if (!s) s = hn_infer_same_dtype(io, b, b_zero, error);
  if (!s) s = hn_infer_quant_param(io, b_scale, columns, error);
  if (!s) s = hn_infer_quant_param(io, b_zero, columns, error);
  if (!s) s = hn_infer_vector(io, bias, columns, error);
  if (!s) hn_infer_set(io, 0, HONE_DTYPE_F32, rank, dim);
  return s;
}

hone_status hn_integer_matmul_run(hone_call *call, const hn_integer_matmul *p, float *y, hone_error *error) {
  hn_batch t;
  hn_batch_make(&t, &p->a->desc, &p->b->desc);
  const hn_quant_param scale = hn_quant_param_of(p->b_scale), zero = hn_quant_param_of(p->b_zero);
  int32_t *a = hn_scratch(call, t.m * t.k, sizeof *a, error),
          *b = a ? hn_scratch(call, t.k * t.n, sizeof *b, error) : NULL,
          *sums = b ? hn_scratch(call, t.m * t.n, sizeof *sums, error) : NULL;
  if (!sums) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < t.count; i++, y += t.m * t.n) {
    int64_t at_a, at_b;
    hn_batch_at(&t, i, &at_a, &at_b);
    for (int64_t e = 0; e < t.m * t.k; e++) a[e] = (int32_t)hn_get_i64(p->a, at_a + e) - p->a_zero;
    for (int64_t e = 0; e < t.k * t.n; e++)
      b[e] = (int32_t)hn_get_i64(p->b, at_b + e) - (int32_t)hn_quant_at(zero, e % t.n);
    hone_status s = hn_matmul(call, HONE_DTYPE_I32, t.m, t.n, t.k, (hn_matrix){a, t.k, 1},
                              (hn_matrix){b, t.n, 1}, sums, error);
    if (s) return s;
    for (int64_t e = 0; e < t.m * t.n; e++) {
      const float v = (float)sums[e] * (p->a_scale * (float)hn_quant_at(scale, e % t.n));
      y[e] = p->bias ? v + (float)hn_get_f64(p->bias, e % t.n) : v;
    }
  }
  return HONE_OK;
}
