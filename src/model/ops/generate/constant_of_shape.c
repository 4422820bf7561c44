/* ConstantOfShape: a tensor of the given shape, all elements equal to `value` (default: one f32 zero). */
#include "model/ops/common/axes.h"
#include "model/ops/common/move.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor *value = hone_node_tensor(io->node, "value");
  if (value && hn_count(value) != 1) return hn_op_bad(io->node, error, "value does not hold one element");
  hone_dtype dtype = value ? value->desc.dtype : HONE_DTYPE_F32;
  const hone_tensor_desc *s = io->input[0];
  int64_t dim[HONE_MAX_RANK];
  if (s->rank >= 0 && s->rank != 1)
    return hn_op_bad(io->node, error, "the shape has rank %d, not 1", s->rank);
  hn_list shape;
  hone_status status = hn_list_infer(io, "", 0, 0, &shape, error);
  if (status) return status;
  if (shape.known) {
    if (shape.n > HONE_MAX_RANK) return hn_op_refuse(io->node, error, "rank %d", shape.n);
    for (int32_t i = 0; i < shape.n; i++)
      if (shape.at[i] < 0)
        return hn_op_bad(io->node, error, "dimension %d is %lld", i, (long long)shape.at[i]);
    hn_infer_set(io, 0, dtype, shape.n, shape.at);
    return HONE_OK;
  }
  bool ranked = s->rank == 1 && s->dim[0] >= 0 && s->dim[0] <= HONE_MAX_RANK;
  for (int32_t i = 0; i < HONE_MAX_RANK; i++) dim[i] = HONE_DIM_UNKNOWN;
  hn_infer_set(io, 0, dtype, ranked ? (int32_t)s->dim[0] : -1, dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  (void)error;
  const hone_tensor *value = hone_node_tensor(call->node, "value");
  hone_tensor *y = call->output[0];
  const float zero = 0;
  hn_fill(y->data, value ? value->data : &zero, hn_count(y), hone_dtype_size(y->desc.dtype));
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "value", .type = HONE_ATTR_TENSOR}, {0}};

HN_OP(constant_of_shape) = {HN_OP_HEAD,
                            .op_type = "ConstantOfShape",
                            .since = 9,
                            .flags = HONE_OP_MOVE,
                            HN_INPUTS(1, 1),
                            HN_OUTPUTS(1, 1),
                            .types = HONE_TYPES(HONE_DTYPE_I64),
                            .attrs = attrs,
                            .infer = infer,
                            .reference = reference,
                            .host_inputs = 1u << 0};
