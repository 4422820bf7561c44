/* Split along any axis in any layout: one move an output. The sizes are those of the outputs. */
#include "backends/cpu/common/moves.h"
#include "backends/cpu/common/step.h"

static bool build(const hone_step *step, hn_moves_builder *b, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc;
  int32_t element;
  if (!hn_moves_check(step, &element, why)) return false;
  int64_t axis = hone_node_int(step->node, "axis", 0), at = 0;
  if (axis < 0) axis += x->rank;
  if (axis < 0 || axis >= x->rank) return hn_refuse(why, "axis outside the rank");
  for (uint32_t i = 0; i < step->n_outputs; i++) {
    const hone_tensor_desc *y = &step->output[i].desc;
    const hn_move_side dst = hn_move_side_of(i, y);
    hn_move_side src = hn_move_side_of(0, x);
    if (y->rank != x->rank) return hn_refuse(why, "output %u has another rank", i);
    src.at = at * x->stride[axis];
    at += y->dim[axis];
    if (at > x->dim[axis]) return hn_refuse(why, "the outputs are longer than the input");
    if (hone_desc_count(y) > 0) hn_moves_add(b, element, y->rank, y->dim, &dst, &src);
  }
  return true;
}

HN_MOVES_TACTIC(split, "Split");
