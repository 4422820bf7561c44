/* ConstantFill: a tensor of one number, of the shape that the attribute or the input's values say, or of the
 * input's own shape; extra_shape is appended to what an input says. */
#include "model/ops/common/axes.h"
#include "model/ops/common/bulk.h"
#include "model/ops/common/move.h"

/* Appends dimensions. */
static hone_status append(const hone_node *node, const int64_t *from, int64_t n, int64_t *dim, int32_t *rank,
                          hone_error *error) {
  if (n > HONE_MAX_RANK - *rank) return hn_op_refuse(node, error, "rank %lld", (long long)n + *rank);
  for (int64_t i = 0; i < n; i++) dim[(*rank)++] = from[i];
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const int64_t to = hone_node_int(io->node, "dtype", HONE_DTYPE_F32);
  const bool by_values = hone_node_int(io->node, "input_as_shape", 0) != 0, given = hn_has_input(io, 0);
  int64_t dim[HONE_MAX_RANK];
  int32_t rank = 0;
  size_t n_shape = 0, n_extra = 0;
  const int64_t *shape = hone_node_ints(io->node, "shape", &n_shape),
                *extra = hone_node_ints(io->node, "extra_shape", &n_extra);
  hone_status s = HONE_OK;
  if (to <= 0 || to >= HONE_DTYPE_COUNT || !(HONE_TYPES(to) & (HN_TYPES_NUMBER | HN_TYPES_BOOL)))
    return hn_op_refuse(io->node, error, "dtype number %lld", (long long)to);
  if (given && n_shape) return hn_op_bad(io->node, error, "shape and an input");
  if (!given && n_extra) return hn_op_bad(io->node, error, "extra_shape without an input");
  if (!given && by_values) return hn_op_bad(io->node, error, "input_as_shape without an input");
  if (!given) {
    s = append(io->node, shape, (int64_t)n_shape, dim, &rank, error);
  } else if (!by_values) {
    if (io->input[0]->rank < 0) return hn_infer_set(io, 0, (hone_dtype)to, -1, NULL), HONE_OK;
    s = append(io->node, io->input[0]->dim, io->input[0]->rank, dim, &rank, error);
  } else {
    hn_list values;
    if ((s = hn_list_infer(io, "", 0, 0, &values, error))) return s;
    const hone_tensor_desc *v = io->input[0];
    if (!values.known && (v->rank != 1 || v->dim[0] < 0 || v->dim[0] > HONE_MAX_RANK))
      return hn_infer_set(io, 0, (hone_dtype)to, -1, NULL), HONE_OK;
    int64_t unknown[HONE_MAX_RANK];
    for (int32_t i = 0; i < HONE_MAX_RANK; i++) unknown[i] = HONE_DIM_UNKNOWN;
    s = append(io->node, values.known ? values.at : unknown, values.known ? values.n : v->dim[0], dim, &rank,
               error);
  }
  if (!s) s = append(io->node, extra, (int64_t)n_extra, dim, &rank, error);
  for (int32_t i = 0; i < rank && !s; i++)
    if (dim[i] < 0 && (!given || i >= rank - (int32_t)n_extra || (by_values && io->value[0])))
      s = hn_op_bad(io->node, error, "dimension %d is %lld", (int)i, (long long)dim[i]);
  if (!s) hn_infer_set(io, 0, (hone_dtype)to, rank, dim);
  return s;
}

static hone_status reference(hone_call *call, hone_error *error) {
  (void)error;
  hone_tensor *y = call->output[0];
  union {
    uint64_t bits;
    char bytes[8];
  } one = {0};
  hone_tensor number = {.desc = hone_desc(y->desc.dtype, 0, NULL), .data = one.bytes};
  hn_set_f64(&number, 0, hone_node_float(call->node, "value", 0));
  hn_fill(y->data, one.bytes, hn_count(y), hone_dtype_size(y->desc.dtype));
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "dtype", .type = HONE_ATTR_INT},          {.name = "extra_shape", .type = HONE_ATTR_INTS},
    {.name = "input_as_shape", .type = HONE_ATTR_INT}, {.name = "shape", .type = HONE_ATTR_INTS},
    {.name = "value", .type = HONE_ATTR_FLOAT},        {0}};

HN_OP(constant_fill) = {HN_OP_HEAD,
                        .op_type = "ConstantFill",
                        .since = 1,
                        .until = 9,
                        HN_INPUTS(0, 1),
                        HN_OUTPUTS(1, 1),
                        .attrs = attrs,
                        .infer = infer,
                        .reference = reference,
                        .host_inputs = 1u << 0};
