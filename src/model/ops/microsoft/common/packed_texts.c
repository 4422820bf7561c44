#include "model/ops/microsoft/common/packed_texts.h"

#include "base/integers.h"

enum { MOST_CAPTURED = 8 };

hone_status hn_texts_capacity(const hone_infer *io, uint32_t captured, int64_t *capacity, hone_error *error) {
  *capacity = hone_node_int(io->node, "state_update_capacity", 0);
  if (*capacity < 0 || *capacity > MOST_CAPTURED)
    return hn_op_bad(io->node, error, "state_update_capacity is %lld, expected 0 to %d", (long long)*capacity,
                     MOST_CAPTURED);
  if ((*capacity > 0) != hn_has_input(io, captured))
    return hn_op_bad(io->node, error, "state_update_capacity is %lld, and capture_count is %s",
                     (long long)*capacity, *capacity ? "left out" : "given");
  return HONE_OK;
}

int64_t hn_texts_batch(const hone_infer *io, uint32_t starts) {
  const int64_t n = hn_dim(io->input[starts], 0);
  return n < 1 ? HONE_DIM_UNKNOWN : n - 1;
}

hone_status hn_texts_infer(const hone_infer *io, uint32_t starts, uint32_t captured, hone_error *error) {
  hone_status s = hn_infer_vector(io, starts, HONE_DIM_UNKNOWN, error);
  if (!s && hn_dim(io->input[starts], 0) == 0)
    s = hn_op_bad(io->node, error, "cumulative_sequence_length is empty");
  if (!s) s = hn_infer_vector(io, captured, hn_texts_batch(io, starts), error);
  if (!s) s = hn_infer_dtype_in(io, starts, HONE_TYPES(HONE_DTYPE_I32), error);
  return s ? s : hn_infer_dtype_in(io, captured, HONE_TYPES(HONE_DTYPE_I32), error);
}

hone_status hn_texts_check(const hone_node *node, const hone_tensor *starts, int64_t tokens,
                           hone_error *error) {
  const int64_t n = hn_count(starts);
  bool good = hn_get_i64(starts, 0) == 0 && hn_get_i64(starts, n - 1) == tokens;
  for (int64_t i = 1; i < n && good; i++) good = hn_get_i64(starts, i) > hn_get_i64(starts, i - 1);
  return good ? HONE_OK
              : hn_op_bad(node, error,
                          "cumulative_sequence_length does not go up from 0 to %lld, the tokens' number",
                          (long long)tokens);
}

int64_t hn_texts_captured(const hone_call *call, uint32_t captured, int64_t row, int64_t tokens,
                          int64_t capacity) {
  const int64_t n = hn_call_has(call, captured) ? hn_get_i64(call->input[captured], row) : 0;
  return hn_max(0, hn_min(n, hn_min(tokens, capacity)));
}
