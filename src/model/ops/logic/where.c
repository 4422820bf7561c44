/* Where: elements of x where the condition is true, of y elsewhere; all three broadcast. */
#include "model/ops/common/convert.h"
#include "model/ops/common/move.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[1], *y = io->input[2];
  if (x->dtype && y->dtype && x->dtype != y->dtype)
    return hn_op_bad(io->node, error, "x is %s, y %s", hone_dtype_name(x->dtype), hone_dtype_name(y->dtype));
  hone_tensor_desc out = *io->input[0];
  hone_status status = hn_broadcast_dims(&out, x, error);
  if (!status) status = hn_broadcast_dims(&out, y, error);
  if (!status) hn_infer_set(io, 0, x->dtype ? x->dtype : y->dtype, out.rank, out.dim);
  return status;
}

#define SELECT(T)                                                                                            \
  for (int64_t i = 0; i < n; i++) {                                                                          \
    ((T *)out)[i] = c[i * sc] ? ((const T *)x)[i * sx] : ((const T *)y)[i * sy];                             \
  }                                                                                                          \
  return

static void select_run(void *out, const uint8_t *c, int64_t sc, const void *x, int64_t sx, const void *y,
                       int64_t sy, int64_t n, size_t size) {
  switch (size) {
  case 1: SELECT(uint8_t);
  case 2: SELECT(uint16_t);
  case 4: SELECT(uint32_t);
  case 8: SELECT(uint64_t);
  default: SELECT(hone_string);
  }
}

static hone_status reference(hone_call *call, hone_error *error) {
  hone_tensor *out = call->output[0];
  const hone_tensor_desc *d = &out->desc;
  int64_t step[3][HONE_MAX_RANK], own[HONE_MAX_RANK], index[HONE_MAX_RANK] = {0}, at[3] = {0}, done = 0;
  for (uint32_t k = 0; k < 3; k++) {
    const hone_tensor_desc *in = &call->input[k]->desc;
    hn_strides(in->dim, in->rank, own);
    for (int32_t i = 0; i < d->rank; i++) {
      int32_t j = i - (d->rank - in->rank);
      step[k][i] = j < 0 || in->dim[j] == 1 ? 0 : own[j];
    }
  }
  int64_t count = hn_count(out), inner = d->rank ? d->dim[d->rank - 1] : 1, last = d->rank - 1, checked = 0;
  size_t size = hone_dtype_size(d->dtype);
  while (done < count) {
    if (done >= checked) {
      hone_status status = hn_call_check(call, error);
      if (status) return status;
      checked = done + HN_STOP_EVERY;
    }
    select_run(hn_at_mut(out, done), (const uint8_t *)call->input[0]->data + at[0],
               last < 0 ? 0 : step[0][last], hn_at(call->input[1], at[1]), last < 0 ? 0 : step[1][last],
               hn_at(call->input[2], at[2]), last < 0 ? 0 : step[2][last], inner, size);
    done += inner;
    for (int32_t i = d->rank - 2; i >= 0; i--) {
      for (uint32_t k = 0; k < 3; k++) at[k] += step[k][i];
      if (++index[i] < d->dim[i]) break;
      for (uint32_t k = 0; k < 3; k++) at[k] -= step[k][i] * d->dim[i];
      index[i] = 0;
    }
  }
  return HONE_OK;
}

HN_OP(where) = {HN_OP_HEAD,
                .op_type = "Where",
                .since = 9,
                .flags = HONE_OP_POINTWISE,
                HN_INPUTS(3, 3),
                HN_OUTPUTS(1, 1),
                .types = HN_TYPES_BOOL,
                .infer = infer,
                .reference = reference,
                .function = &(const hone_function){.op = HONE_PW_WHERE, .operands = 3}};
