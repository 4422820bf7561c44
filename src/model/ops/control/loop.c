/* Loop: a body that is repeated up to a trip count and while a condition holds. Inputs: trip count,
 * condition, states; the body takes (trip, condition, states) and gives (condition, states, scan outputs). */
#include "model/ops/control/bodies.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  uint32_t states = io->n_inputs > 2 ? io->n_inputs - 2 : 0;
  hone_status s = HONE_OK;
  if (hn_has_input(io, 0) && io->input[0]->dtype && io->input[0]->dtype != HONE_DTYPE_I64)
    return hn_op_bad(io->node, error, "the trip count is %s", hone_dtype_name(io->input[0]->dtype));
  if (hn_has_input(io, 1) && io->input[1]->dtype && io->input[1]->dtype != HONE_DTYPE_BOOL)
    return hn_op_bad(io->node, error, "the condition is %s", hone_dtype_name(io->input[1]->dtype));
  if (states > io->n_outputs || hn_body_outputs(io->node, "body") != (int64_t)io->n_outputs + 1)
    return hn_op_bad(io->node, error, "the body has %lld outputs, the node %u and %u states",
                     (long long)hn_body_outputs(io->node, "body"), io->n_outputs, states);
  for (uint32_t i = 0; i < io->n_outputs && !s; i++) {
    const hone_tensor_desc *made = hn_body_output(io->node, "body", i + 1);
    if (i >= states) { /* the number of trips is not known beforehand: the condition may end the loop */
      s = hn_infer_stacked(io, i, made, 0, HONE_DIM_UNKNOWN, error);
      continue;
    }
    if (!hn_has_input(io, i + 2)) return hn_op_bad(io->node, error, "state %u has no initial value", i);
    hone_tensor_desc either, first = *io->input[i + 2];
    if (made->dtype && first.dtype == HONE_OPTIONAL_OF(made->dtype))
      first = *made; /* filled by the first trip */
    if ((s = hn_desc_either(io->node, &first, made, &either, error))) return s;
    hn_infer_set(io, i, either.dtype, either.rank, either.dim);
  }
  return s;
}

static const hone_attr_desc attrs[] = {{"body", HONE_ATTR_GRAPH, true, 0, 0}, {0}};

HN_OP(loop) = {HN_OP_HEAD,
               .op_type = "Loop",
               .since = 1,
               .flags = HONE_OP_CONTROL | HONE_OP_ITEMS,
               HN_INPUTS(0, HONE_VARIADIC),
               HN_OUTPUTS(0, HONE_VARIADIC),
               .attrs = attrs,
               .infer = infer};
