/* Indices whose last dimension is a tuple that names a slice. */
#include "model/ops/indexing/tuples.h"
#include "model/ops/common/convert.h"
#include "model/ops/common/index.h"
#include "model/ops/common/move.h"

hone_status hn_tuples_infer(const hone_infer *io, int64_t batch, int64_t *length, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *index = io->input[1];
  *length = -1;
  if (index->dtype && index->dtype != HONE_DTYPE_I64)
    return hn_op_bad(io->node, error, "indices are %s, not i64", hone_dtype_name(index->dtype));
  if (index->rank == 0) return hn_op_bad(io->node, error, "indices are a scalar");
  if (x->rank < 0 || index->rank < 0) return HONE_OK;
  if (batch < 0 || batch >= x->rank || batch >= index->rank)
    return hn_op_bad(io->node, error, "batch_dims is %lld", (long long)batch);
  for (int64_t i = 0; i < batch; i++)
    if (x->dim[i] >= 0 && index->dim[i] >= 0 && x->dim[i] != index->dim[i])
      return hn_op_bad(io->node, error, "data and indices differ in batch dimension %lld", (long long)i);
  int64_t n = index->dim[index->rank - 1];
  if (n < 0) return HONE_OK;
  if (n > x->rank - batch)
    return hn_op_bad(io->node, error, "tuples of %lld indices for %lld dimensions", (long long)n,
                     (long long)(x->rank - batch));
  *length = n;
  return HONE_OK;
}

hone_status hn_tuples_run(hone_call *call, int64_t batch, hn_tuple_visit visit, void *context,
                          hone_error *error) {
  const hone_tensor_desc *x = &call->input[0]->desc, *d = &call->input[1]->desc;
  const int64_t *tuple = call->input[1]->data;
  int64_t step[HONE_MAX_RANK], n = d->dim[d->rank - 1], batches = hn_product(x->dim, 0, (int32_t)batch);
  hn_strides(x->dim, x->rank, step);
  int64_t slice = hn_product(x->dim, (int32_t)(batch + n), x->rank);
  int64_t per_batch = hn_product(d->dim, (int32_t)batch, d->rank - 1),
          batch_step = batch ? step[batch - 1] : 0;
  for (int64_t b = 0; b < batches; b++)
    for (int64_t i = 0; i < per_batch; i++, tuple += n) {
      int64_t at = b * batch_step, place = b * per_batch + i;
      hone_status status = place % 1024 == 0 ? hn_call_check(call, error) : HONE_OK;
      for (int64_t k = 0; k < n && !status; k++) {
        int64_t index;
        status = hn_index(call->node, tuple[k], x->dim[batch + k], &index, error);
        if (!status) at += index * step[batch + k];
      }
      if (!status) status = visit(call, context, place, at, slice, error);
      if (status) return status;
    }
  return HONE_OK;
}
