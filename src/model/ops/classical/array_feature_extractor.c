/* ArrayFeatureExtractor: elements of the last dimension by their places; of a vector one row of them. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *y = io->input[1];
  if (x->rank == 0) return hn_op_bad(io->node, error, "X has no dimensions");
  const hone_status s = hn_infer_dtype_in(io, 1, HONE_TYPES(HONE_DTYPE_I64), error);
  if (s) return s;
  int64_t dim[HONE_MAX_RANK] = {1};
  const int32_t rank = x->rank < 0 ? -1 : x->rank == 1 ? 2 : x->rank;
  for (int32_t i = 0; i < rank - 1 && x->rank > 1; i++) dim[i] = x->dim[i];
  const int64_t count = hone_desc_count(y);
  if (rank >= 0) dim[rank - 1] = count < 0 ? HONE_DIM_UNKNOWN : count;
  hn_infer_set(io, 0, x->dtype, rank, dim);
  return HONE_OK;
}

/* The elements of a row, of SIZE bytes each: one that the compiler knows, where it is a usual one. */
#define PICK(SIZE)                                                                                           \
  for (int64_t i = 0; i < n; i++, to += (SIZE)) memcpy(to, from + place[i] * (int64_t)(SIZE), SIZE);         \
  break

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const int64_t *place = call->input[1]->data, n = hn_count(call->input[1]);
  const int64_t width = x->desc.dim[x->desc.rank - 1], rows = hn_dims(&x->desc, 0, x->desc.rank - 1);
  const size_t size = hone_dtype_size(x->desc.dtype);
  for (int64_t i = 0; i < n; i++)
    if (place[i] < 0 || place[i] >= width)
      return hn_op_bad(call->node, error, "Y has %lld, the last dimension of X %lld elements",
                       (long long)place[i], (long long)width);
  char *to = call->output[0]->data;
  const char *from = x->data;
  for (int64_t r = 0; r < rows; r++, from += (size_t)width * size) {
    if (r % 1024 == 0 && call->stopped(call)) return HONE_ERROR_CANCELLED;
    switch (size) {
    case 4: PICK(4);
    case 8: PICK(8);
    default: PICK(size);
    }
  }
  return HONE_OK;
}
#undef PICK

HN_OP(array_feature_extractor) = {HONE_DESC_HEAD(hone_op_desc),
                                  .domain = "ai.onnx.ml",
                                  .op_type = "ArrayFeatureExtractor",
                                  .since = 1,
                                  .flags = HONE_OP_MOVE,
                                  HN_INPUTS(2, 2),
                                  HN_OUTPUTS(1, 1),
                                  .types = HONE_TYPES(HONE_DTYPE_F32) | HONE_TYPES(HONE_DTYPE_F64) |
                                           HONE_TYPES(HONE_DTYPE_I64) | HONE_TYPES(HONE_DTYPE_I32) |
                                           HN_TYPES_STRING,
                                  .infer = infer,
                                  .reference = reference};
