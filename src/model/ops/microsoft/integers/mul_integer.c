/* MulInteger: (a - a's zero point) (b - b's zero point) of bytes in i32, with broadcasting. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

enum { A, A_ZERO, B, B_ZERO };

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_tensor_desc y = *io->input[A];
  hone_status s = hn_infer_same_dtype(io, A, B, error);
  for (uint32_t i = A_ZERO; i <= B_ZERO && !s; i += 2) {
    if (!hn_has_input(io, i)) continue;
    s = hn_infer_same_dtype(io, A, i, error);
    const int64_t n = hone_desc_count(io->input[i]);
    if (!s && n >= 0 && n != 1) s = hn_op_bad(io->node, error, "a zero point is not one number");
  }
  const bool open = y.rank < 0 || io->input[B]->rank < 0;
  if (!s && !open) s = hn_broadcast_dims(&y, io->input[B], error);
  if (!s) hn_infer_set(io, 0, HONE_DTYPE_I32, open ? -1 : y.rank, y.dim);
  return s;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *in[2] = {call->input[A], call->input[B]};
  const int64_t za = hn_call_has(call, A_ZERO) ? hn_get_i64(call->input[A_ZERO], 0) : 0,
                zb = hn_call_has(call, B_ZERO) ? hn_get_i64(call->input[B_ZERO], 0) : 0;
  int32_t *y = call->output[0]->data;
  hn_iter it;
  hn_iter_init(&it, &call->output[0]->desc, in, 2);
  for (int64_t i = 0; i < it.count; i++, hn_iter_next(&it)) {
    const hone_status s = i % HN_STOP_EVERY == 0 ? hn_call_check(call, error) : HONE_OK;
    if (s) return s;
    y[i] = (int32_t)((hn_get_i64(in[0], it.at[0]) - za) * (hn_get_i64(in[1], it.at[1]) - zb));
  }
  return HONE_OK;
}

HN_OP(mul_integer) = {HONE_DESC_HEAD(hone_op_desc),
                      .domain = "com.microsoft",
                      .op_type = "MulInteger",
                      .since = 1,
                      HN_INPUTS(3, 4),
                      HN_OUTPUTS(1, 1),
                      .types = HONE_TYPES(HONE_DTYPE_I8) | HONE_TYPES(HONE_DTYPE_U8),
                      .infer = infer,
                      .reference = reference};
