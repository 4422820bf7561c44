/* ReduceSumInteger: the sums of bytes over axes in 32 bits. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

/* The axes as bits, and the result's descriptor. */
static hone_status shaped(const hone_node *node, const hone_tensor_desc *x, uint32_t *axes,
                          hone_tensor_desc *y, hone_error *error) {
  size_t n;
  const int64_t *given = hone_node_ints(node, "axes", &n);
  const bool keep = hone_node_int(node, "keepdims", 1) != 0;
  *axes = n ? 0 : ~0u;
  for (size_t i = 0; i < n; i++) {
    int32_t axis;
    const hone_status s = hn_axis(given[i], x->rank, &axis, error);
    if (s) return s;
    *axes |= 1u << axis;
  }
  int64_t dim[HONE_MAX_RANK];
  int32_t rank = 0;
  for (int32_t i = 0; i < x->rank; i++)
    if (keep || !(*axes >> i & 1)) dim[rank++] = *axes >> i & 1 ? 1 : x->dim[i];
  *y = hone_desc(x->dtype == HONE_DTYPE_U8 ? HONE_DTYPE_U32 : HONE_DTYPE_I32, rank, dim);
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_tensor_desc y = {.dtype = io->input[0]->dtype == HONE_DTYPE_U8 ? HONE_DTYPE_U32 : HONE_DTYPE_I32,
                        .rank = -1};
  uint32_t axes;
  const hone_status s = io->input[0]->rank < 0 ? HONE_OK : shaped(io->node, io->input[0], &axes, &y, error);
  if (!s) hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  return s;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const hone_tensor_desc *d = &x->desc;
  hone_tensor_desc y;
  uint32_t axes;
  const hone_status s = shaped(call->node, d, &axes, &y, error);
  if (s) return s;
  uint32_t *sum = call->output[0]->data;
  int64_t step[HONE_MAX_RANK], count = 1;
  for (int32_t i = d->rank - 1; i >= 0; i--) {
    step[i] = axes >> i & 1 ? 0 : count;
    if (step[i]) count *= d->dim[i];
  }
  memset(sum, 0, (size_t)hn_count(call->output[0]) * sizeof *sum);
  for (int64_t i = 0, n = hn_count(x); i < n; i++) {
    const hone_status stopped = i % HN_STOP_EVERY == 0 ? hn_call_check(call, error) : HONE_OK;
    if (stopped) return stopped;
    int64_t to = 0, rest = i;
    for (int32_t k = d->rank - 1; k >= 0; k--) to += rest % d->dim[k] * step[k], rest /= d->dim[k];
    sum[to] += (uint32_t)hn_get_i64(x, i);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "axes", .type = HONE_ATTR_INTS}, {.name = "keepdims", .type = HONE_ATTR_INT}, {0}};

HN_OP(reduce_sum_integer) = {HONE_DESC_HEAD(hone_op_desc),
                             .domain = "com.microsoft",
                             .op_type = "ReduceSumInteger",
                             .since = 1,
                             HN_INPUTS(1, 1),
                             HN_OUTPUTS(1, 1),
                             .types = HONE_TYPES(HONE_DTYPE_I8) | HONE_TYPES(HONE_DTYPE_U8),
                             .attrs = attrs,
                             .infer = infer,
                             .reference = reference};
