/* Concat along any axis, inputs and output in any layout: one move an input. */
#include "backends/cpu/common/moves.h"
#include "backends/cpu/common/step.h"

static bool build(const hone_step *step, hn_moves_builder *b, hone_reason *why) {
  const hone_tensor_desc *y = &step->output[0].desc;
  int32_t element;
  if (!hn_moves_check(step, &element, why)) return false;
  int64_t axis = hone_node_int(step->node, "axis", 1), at = 0; /* opset 1 allowed to leave it out */
  if (axis < 0) axis += y->rank;
  if (axis < 0 || axis >= y->rank) return hn_refuse(why, "axis outside the rank");
  for (uint32_t i = 0; i < step->n_anchor_inputs; i++) {
    const hone_tensor_desc *x = &step->input[i].desc;
    if (x->dtype != y->dtype || !hone_desc_known(x) || x->rank != y->rank)
      return hn_refuse(why, "input %u has another type or rank", i);
    hn_move_side dst = hn_move_side_of(0, y);
    const hn_move_side src = hn_move_side_of(i, x);
    dst.at = at * y->stride[axis];
    at += x->dim[axis];
    if (at > y->dim[axis]) return hn_refuse(why, "the inputs are longer than the output");
    if (hone_desc_count(x) > 0) hn_moves_add(b, element, x->rank, x->dim, &dst, &src);
  }
  return true;
}

HN_MOVES_TACTIC(concat, "Concat");
