/* RemovePadding: the tokens of all inputs one after the other, without those behind each input's count; where
 * each of them stood (those of the padding behind), where each input begins, and the largest count. */
#include "model/ops/microsoft/common/inner.h"

enum { X, COUNTS };
enum { Y, OFFSETS, ENDS, MOST };

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X];
  const int64_t inputs = hn_dim(x, 0), one = 1, ends = inputs < 0 ? inputs : inputs + 1;
  hone_status s = hn_infer_dtype_in(io, COUNTS, HONE_TYPES(HONE_DTYPE_I32), error);
  if (!s && x->rank >= 0 && x->rank != 3)
    s = hn_op_bad(io->node, error, "the input has rank %d, expected 3", (int)x->rank);
  if (!s) s = hn_infer_vector(io, COUNTS, inputs, error);
  if (s) return s;
  hn_infer_set(io, Y, x->dtype, 2, (const int64_t[]){HONE_DIM_UNKNOWN, hn_dim(x, 2)});
  hn_infer_set(io, OFFSETS, HONE_DTYPE_I32, 2, (const int64_t[]){inputs, hn_dim(x, 1)});
  hn_infer_set(io, ENDS, HONE_DTYPE_I32, 1, &ends);
  hn_infer_set(io, MOST, HONE_DTYPE_I32, 1, &one);
  return HONE_OK;
}

/* At most all tokens stay. */
static hone_status most(const hone_infer *io, hone_error *error) {
  const hone_status s = infer(io, error);
  const hone_tensor_desc *x = io->input[X];
  if (!s && io->output[Y] && x->rank == 3)
    io->output[Y]->dim[0] = x->dim[0] < 0 || x->dim[1] < 0 ? HONE_DIM_UNKNOWN : x->dim[0] * x->dim[1];
  return s;
}

/* Output i of numbers; *out NULL: not wanted. */
static hone_status numbers(hone_call *call, uint32_t i, int32_t rank, const int64_t *dim, int32_t **out,
                           hone_error *error) {
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_I32, rank, dim);
  hone_tensor *to = i < call->n_outputs ? call->output[i] : NULL;
  const hone_status s = to && !to->data ? call->alloc_output(call, i, &d, error) : HONE_OK;
  *out = to && !s ? to->data : NULL;
  return s;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[X];
  const int64_t inputs = x->desc.dim[0], tokens = x->desc.dim[1], size = x->desc.dim[2];
  const int32_t *counts = call->input[COUNTS]->data;
  int64_t total = 0, largest = 0;
  for (int64_t b = 0; b < inputs; b++) {
    if (counts[b] < 0 || counts[b] > tokens)
      return hn_op_bad(call->node, error, "input %lld has %d of %lld tokens", (long long)b, (int)counts[b],
                       (long long)tokens);
    total += counts[b];
    largest = hn_max(largest, counts[b]);
  }
  hone_status s;
  const hone_tensor_desc d = hone_desc(x->desc.dtype, 2, (const int64_t[]){total, size});
  if (call->output[Y] && !call->output[Y]->data && (s = call->alloc_output(call, Y, &d, error))) return s;
  const int64_t one = 1, n_ends = inputs + 1;
  int32_t *offsets, *ends, *longest;
  s = numbers(call, OFFSETS, 2, x->desc.dim, &offsets, error);
  if (!s) s = numbers(call, ENDS, 1, &n_ends, &ends, error);
  if (!s) s = numbers(call, MOST, 1, &one, &longest, error);
  if (s) return s;
  const size_t row = (size_t)size * hone_dtype_size(x->desc.dtype);
  int64_t at = 0, padding = total;
  for (int64_t b = 0; b < inputs; b++) {
    if (ends) ends[b] = (int32_t)at;
    if (call->output[Y] && counts[b] && row)
      memcpy((char *)call->output[Y]->data + (size_t)at * row,
             (const char *)x->data + (size_t)(b * tokens) * row, (size_t)counts[b] * row);
    for (int64_t t = 0; t < tokens && offsets; t++)
      offsets[t < counts[b] ? at + t : padding + t - counts[b]] = (int32_t)(b * tokens + t);
    at += counts[b], padding += tokens - counts[b];
  }
  if (ends) ends[inputs] = (int32_t)at;
  if (longest) *longest = (int32_t)largest;
  return HONE_OK;
}

HN_OP(remove_padding) = {HONE_DESC_HEAD(hone_op_desc),
                         .domain = "com.microsoft",
                         .op_type = "RemovePadding",
                         .since = 1,
                         .flags = HONE_OP_DATA_DEPENDENT,
                         HN_INPUTS(2, 2),
                         HN_OUTPUTS(1, 4),
                         .types = HN_TYPES_FLOAT,
                         .infer = infer,
                         .most = most,
                         .reference = reference};
