#include "model/ops/sequence/sequence.h"

hone_status hn_infer_sequence(const hone_infer *io, uint32_t i, hone_error *error) {
  const hone_dtype d = io->input[i]->dtype;
  if (d == HONE_DTYPE_NONE || (d & HONE_SEQUENCE && !(d & HONE_OPTIONAL))) return HONE_OK;
  return hn_op_bad(io->node, error, "input %u is %s, not a sequence", i, hone_dtype_name(d));
}

void hn_infer_whole(const hone_infer *io, hone_dtype dtype) { hn_infer_set(io, 0, dtype, 0, NULL); }

hone_status hn_infer_position(const hone_infer *io, uint32_t i, hone_error *error) {
  if (!hn_has_input(io, i)) return HONE_OK;
  const hone_tensor_desc *d = io->input[i];
  const bool whole = d->dtype == HONE_DTYPE_NONE || d->dtype == HONE_DTYPE_I32 || d->dtype == HONE_DTYPE_I64;
  const int64_t n = hone_desc_count(d);
  if (whole && (n < 0 || n == 1)) return HONE_OK;
  char text[96];
  return hn_op_bad(io->node, error, "the position is %s, not one i32 or i64",
                   hone_desc_format(d, text, sizeof text));
}

hone_status hn_position(hone_call *call, uint32_t i, size_t n, size_t most, size_t otherwise, size_t *at,
                        hone_error *error) {
  *at = otherwise;
  if (!hn_call_has(call, i)) return HONE_OK;
  const int64_t given = hn_get_i64(call->input[i], 0), place = given < 0 ? given + (int64_t)n : given;
  if (place < 0 || (uint64_t)place > most)
    return hn_op_bad(call->node, error, "position %lld is outside of a sequence of %zu", (long long)given, n);
  *at = (size_t)place;
  return HONE_OK;
}

const hone_items *hn_sequence(hone_call *call, uint32_t i, hone_error *error) {
  const hone_dtype d = call->input[i]->desc.dtype;
  if (d & HONE_SEQUENCE && !(d & HONE_OPTIONAL)) return hn_items(call->input[i]);
  hn_op_bad(call->node, error, "input %u is %s, not a sequence", i, hone_dtype_name(d));
  return NULL;
}

static void *keep(void *self, size_t bytes) {
  hone_call *call = self;
  return call->scratch_keep(call, bytes);
}

const hone_tensor **hn_items_room(hone_call *call, size_t n, hone_error *error) {
  const hone_tensor **list = n > SIZE_MAX / sizeof *list ? NULL : keep(call, (n ? n : 1) * sizeof *list);
  if (!list) hn_fail_memory(error, n * sizeof *list, "a sequence");
  return list;
}

const hone_tensor *hn_items_keep(hone_call *call, const hone_tensor *t, hone_error *error) {
  const hone_tensor *copy = hn_items_copy(t, keep, call);
  if (!copy) hn_fail_memory(error, (unsigned long long)hone_desc_bytes(&t->desc), "what is in a sequence");
  return copy;
}

void hn_items_give(hone_call *call, size_t n, const hone_tensor *const *item) {
  const hone_items items = {n, item};
  memcpy(call->output[0]->data, &items, sizeof items);
}

hone_status hn_items_take(hone_call *call, const hone_tensor *t, hone_error *error) {
  if (!call->output[0]) return HONE_OK;
  hone_status status = call->alloc_output(call, 0, &t->desc, error);
  const int64_t bytes = hone_desc_bytes(&t->desc);
  if (status == HONE_OK && bytes > 0) memcpy(call->output[0]->data, t->data, (size_t)bytes);
  return status;
}
