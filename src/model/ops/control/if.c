/* If: one of two bodies, which read the values around them; run by the evaluator and the runtime. */
#include "model/ops/control/bodies.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor *chosen = io->value[0];
  if (io->input[0]->dtype != HONE_DTYPE_NONE && io->input[0]->dtype != HONE_DTYPE_BOOL)
    return hn_op_bad(io->node, error, "the condition is %s", hone_dtype_name(io->input[0]->dtype));
  if (hn_body_outputs(io->node, "then_branch") != io->n_outputs ||
      hn_body_outputs(io->node, "else_branch") != io->n_outputs)
    return hn_op_bad(io->node, error, "the branches do not have %u outputs", io->n_outputs);
  for (uint32_t i = 0; i < io->n_outputs; i++) {
    const hone_tensor_desc *yes = hn_body_output(io->node, "then_branch", i);
    const hone_tensor_desc *no = hn_body_output(io->node, "else_branch", i);
    const bool yes_fits = hn_body_fits(io->node, "then_branch"),
               no_fits = hn_body_fits(io->node, "else_branch");
    hone_tensor_desc either;
    if (chosen && hn_count(chosen) == 1) {
      either = hn_get_i64(chosen, 0) ? *yes : *no;
    } else if (yes_fits && no_fits) {
      hone_status s = hn_desc_either(io->node, yes, no, &either, error);
      if (s) return s;
    } else {
      either = yes_fits ? *yes : *no; /* the other ends every run that takes it */
    }
    hn_infer_set(io, i, either.dtype, either.rank, either.dim);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {"then_branch", HONE_ATTR_GRAPH, true, 0, 0}, {"else_branch", HONE_ATTR_GRAPH, true, 0, 0}, {0}};

HN_OP(if) = {HN_OP_HEAD,      .op_type = "If",
             .since = 1,      .flags = HONE_OP_CONTROL | HONE_OP_ITEMS,
             HN_INPUTS(1, 1), HN_OUTPUTS(1, HONE_VARIADIC),
             .attrs = attrs,  .infer = infer};
