/* MaxUnpool: puts each element where MaxPool found it, zeros elsewhere. Indices count in the shape that
 * kernel, strides and pads give; an explicit output_shape only adds zeros behind it. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/window.h"

/* Dimensions of the tensor that the indices count in. */
static hone_status natural_dims(const hone_node *node, const hone_tensor_desc *x, int64_t *dims,
                                hone_error *error) {
  hn_window w;
  hone_status s = hn_window_init_transposed(&w, node, x, NULL, error);
  if (s) return s;
  dims[0] = x->dim[0];
  dims[1] = x->dim[1];
  for (int32_t i = 0; i < w.n; i++) dims[2 + i] = w.out[i];
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *index = io->input[1];
  int64_t dims[HONE_MAX_RANK];
  hone_status s = hn_infer_dtype_in(io, 1, HONE_TYPES(HONE_DTYPE_I64), error);
  if (!s) s = hn_infer_dtype_in(io, 2, HONE_TYPES(HONE_DTYPE_I64), error);
  if (s) return s;
  if (x->rank >= 0 && index->rank >= 0) {
    bool same = x->rank == index->rank;
    for (int32_t d = 0; same && d < x->rank; d++)
      same = x->dim[d] < 0 || index->dim[d] < 0 || x->dim[d] == index->dim[d];
    if (!same) return hn_op_bad(io->node, error, "the input and its indices have different shapes");
  }
  if (x->rank < 0) return hn_infer_set(io, 0, x->dtype, -1, NULL), HONE_OK;
  if ((s = natural_dims(io->node, x, dims, error))) return s;
  if (hn_has_input(io, 2)) {
    int64_t n = hn_infer_ints(io, 2, dims, HONE_MAX_RANK);
    if (n != -1 && n != x->rank)
      return hn_op_bad(io->node, error, "output_shape does not have %d values", (int)x->rank);
    for (int32_t d = 0; d < x->rank; d++) {
      if (n == -1) dims[d] = HONE_DIM_UNKNOWN;
      if (n != -1 && dims[d] < 0)
        return hn_op_bad(io->node, error, "output_shape holds %lld", (long long)dims[d]);
    }
  }
  hn_infer_set(io, 0, x->dtype, x->rank, dims);
  return HONE_OK;
}

/* y[index[i]] = x[i] of n elements; the first index that is not below total, or -1. */
#define PUT(name, T)                                                                                         \
  static int64_t name(void *to, const void *from, const int64_t *index, int64_t n, int64_t total) {          \
    T *y = to;                                                                                               \
    const T *x = from;                                                                                       \
    for (int64_t i = 0; i < n; i++) {                                                                        \
      if ((uint64_t)index[i] >= (uint64_t)total) return i;                                                   \
      y[index[i]] = x[i];                                                                                    \
    }                                                                                                        \
    return -1;                                                                                               \
  }
PUT(put_2, uint16_t)
PUT(put_4, uint32_t)
PUT(put_8, uint64_t)

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  const int64_t *index = call->input[1]->data;
  int64_t natural[HONE_MAX_RANK], total, n = hn_count(x);
  size_t size = hone_dtype_size(x->desc.dtype);
  int32_t rank = x->desc.rank;
  hone_status s = natural_dims(call->node, &x->desc, natural, error);
  if (s) return s;
  hone_tensor_desc inferred = hone_desc(x->desc.dtype, rank, natural);
  total = hone_desc_count(&inferred);
  memset(y->data, 0, (size_t)hone_desc_bytes(&y->desc));
  if (hone_desc_same_dims(&inferred, &y->desc)) { /* indices are places */
    const int64_t outside = size == 8   ? put_8(y->data, x->data, index, n, total)
                            : size == 4 ? put_4(y->data, x->data, index, n, total)
                                        : put_2(y->data, x->data, index, n, total);
    return outside < 0 ? HONE_OK
                       : hn_op_bad(call->node, error, "index %lld is outside of the output",
                                   (long long)index[outside]);
  }
  for (int64_t i = 0; i < n; i++) {
    int64_t left = index[i], at = 0, step = 1;
    if (left < 0 || left >= total)
      return hn_op_bad(call->node, error, "index %lld is outside of the output", (long long)index[i]);
    for (int32_t d = rank - 1; d >= 0; d--) {
      int64_t place = left % natural[d];
      if (place >= y->desc.dim[d])
        return hn_op_bad(call->node, error, "index %lld is outside of output_shape", (long long)index[i]);
      at += place * step;
      step *= y->desc.dim[d];
      left /= natural[d];
    }
    memcpy((char *)y->data + (size_t)at * size, (const char *)x->data + (size_t)i * size, size);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{"kernel_shape", HONE_ATTR_INTS, true, 0, 0},
                                       {"pads", HONE_ATTR_INTS, false, 0, 0},
                                       {"strides", HONE_ATTR_INTS, false, 0, 0},
                                       {0}};

HN_OP(max_unpool) = {HN_OP_HEAD,
                     .op_type = "MaxUnpool",
                     .since = 9,
                     .flags = HONE_OP_MOVE,
                     HN_INPUTS(2, 3),
                     HN_OUTPUTS(1, 1),
                     .types = HN_TYPES_FLOAT,
                     .attrs = attrs,
                     .infer = infer,
                     .reference = reference,
                     .host_inputs = 1u << 2};
