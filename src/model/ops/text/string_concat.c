/* StringConcat: the strings of two tensors one behind the other, with broadcasting. */
#include "model/ops/common/convert.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_tensor_desc y = *io->input[0];
  for (uint32_t i = 0; i < 2; i++)
    if (io->input[i]->dtype && io->input[i]->dtype != HONE_DTYPE_STRING)
      return hn_op_bad(io->node, error, "operand %u is %s", i + 1, hone_dtype_name(io->input[i]->dtype));
  const hone_status s = hn_broadcast_dims(&y, io->input[1], error);
  if (s) return s;
  hn_infer_set(io, 0, HONE_DTYPE_STRING, y.rank, y.dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  hone_tensor *y = call->output[0];
  const hone_string *a = call->input[0]->data, *b = call->input[1]->data;
  hn_iter it;
  hn_iter_init(&it, &y->desc, call->input, 2);
  for (int64_t i = 0; i < it.count; i++, hn_iter_next(&it)) {
    const hone_string l = a[it.at[0]], r = b[it.at[1]];
    size_t n;
    char *p =
        __builtin_add_overflow(l.len, r.len, &n) || n == SIZE_MAX ? NULL : call->scratch_keep(call, n + 1);
    if (!p) return hn_fail_memory(error, n, "a string");
    if (l.len) memcpy(p, l.ptr, l.len);
    if (r.len) memcpy(p + l.len, r.ptr, r.len);
    p[n] = 0;
    ((hone_string *)y->data)[i] = (hone_string){p, n};
    if (i % 4096 == 0) {
      const hone_status s = hn_call_check(call, error);
      if (s) return s;
    }
  }
  return HONE_OK;
}

HN_OP(string_concat) = {HN_OP_HEAD,       .op_type = "StringConcat", .since = 20,    HN_INPUTS(2, 2),
                        HN_OUTPUTS(1, 1), .types = HN_TYPES_STRING,  .infer = infer, .reference = reference};
