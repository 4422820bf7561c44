/* NonZero: the indices of all elements that are not zero, one column each, in row-major order. */
#include "model/ops/common/convert.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  (void)error;
  int64_t dim[2] = {io->input[0]->rank < 0 ? HONE_DIM_UNKNOWN : io->input[0]->rank, HONE_DIM_UNKNOWN};
  hn_infer_set(io, 0, HONE_DTYPE_I64, 2, dim);
  return HONE_OK;
}

/* At most every element is not zero. */
static hone_status most(const hone_infer *io, hone_error *error) {
  hone_status status = infer(io, error);
  if (!status && io->output[0]) io->output[0]->dim[1] = hone_desc_count(io->input[0]);
  return status;
}

static bool is_zero(const hone_tensor *x, int64_t i) {
  if (x->desc.dtype == HONE_DTYPE_STRING) return ((const hone_string *)x->data)[i].len == 0;
  return hone_dtype_is_float(x->desc.dtype) ? hn_get_f64(x, i) == 0 : hn_get_i64(x, i) == 0;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  int32_t rank = x->desc.rank;
  int64_t count = hn_count(x), n = 0, index[HONE_MAX_RANK] = {0};
  for (int64_t i = 0; i < count; i++) {
    hone_status status = i % HN_STOP_EVERY == 0 ? hn_call_check(call, error) : HONE_OK;
    if (status) return status;
    n += !is_zero(x, i);
  }
  hone_tensor_desc y = hone_desc(HONE_DTYPE_I64, 2, (const int64_t[]){rank, n});
  hone_status status = call->alloc_output(call, 0, &y, error);
  if (status) return status;
  int64_t *to = call->output[0]->data, at = 0;
  for (int64_t i = 0; i < count && at < n; i++) {
    if (!is_zero(x, i)) {
      for (int32_t d = 0; d < rank; d++) to[d * n + at] = index[d];
      at++;
    }
    for (int32_t d = rank - 1; d >= 0 && ++index[d] == x->desc.dim[d]; d--) index[d] = 0;
  }
  return HONE_OK;
}

HN_OP(non_zero) = {HN_OP_HEAD,
                   .op_type = "NonZero",
                   .since = 9,
                   .flags = HONE_OP_DATA_DEPENDENT,
                   HN_INPUTS(1, 1),
                   HN_OUTPUTS(1, 1),
                   .types = HN_TYPES_ALL,
                   .infer = infer,
                   .most = most,
                   .reference = reference};
